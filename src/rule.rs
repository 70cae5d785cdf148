//! The rules of AG-UI 1.0 that this crate enforces, one table.

use core::fmt;

macro_rules! rules {
    ($($id:ident $code:literal $title:literal $page:literal $explain:literal;)*) => {
        /// A rule of the protocol, as cited by every error and warning of this crate.
        ///
        /// The ids are stable. The title is one line, the explanation a short paragraph, and the
        /// page names the chapter of the AG-UI 1.0 specification that the rule digests.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[non_exhaustive]
        pub enum Rule {
            $(#[doc = $title] $id,)*
        }

        impl Rule {
            /// Every rule, in the order of the table.
            pub const ALL: &'static [Rule] = &[$(Rule::$id),*];

            /// The id as it is cited: `"S2"`.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self { $(Rule::$id => $code,)* }
            }

            /// The rule in one line.
            #[must_use]
            pub const fn title(self) -> &'static str {
                match self { $(Rule::$id => $title,)* }
            }

            /// What the rule asks, and why a stream breaks it.
            #[must_use]
            pub const fn explanation(self) -> &'static str {
                match self { $(Rule::$id => $explain,)* }
            }

            /// The page of the AG-UI 1.0 specification, relative to its root.
            #[must_use]
            pub const fn page(self) -> &'static str {
                match self { $(Rule::$id => $page,)* }
            }

            /// The rule with this id; letters in either case.
            #[must_use]
            pub fn from_id(id: &str) -> Option<Rule> {
                Rule::ALL.iter().copied().find(|rule| rule.as_str().eq_ignore_ascii_case(id))
            }
        }
    };
}

rules! {
    E1 "E1" "an event of an unknown type is dropped with a warning" "basic/processing"
        "A newer producer may send event types that this version does not know. They never reach the application and never end the run.";
    E2 "E2" "an unknown property of a closed object is stripped with a warning" "basic/processing"
        "Every object that the schema describes is closed, at any depth. What it does not describe is removed, and the warning names its JSON path.";
    E3 "E3" "an unknown member of a union is removed with a warning" "basic/processing"
        "In a list the element goes, in an optional field the field goes, in a required field the object that contains it goes, and so on outward.";
    E4 "E4" "an unknown string of a closed set is removed with a warning" "basic/processing"
        "A role, subtype or status that this version does not know is treated as an unknown union member: stripped where it is optional, taking its container with it where it is required.";
    E5 "E5" "a malformed value of a described field is fatal" "basic/processing"
        "A field that the protocol describes holds a value that the schema rejects: a wrong type, a missing required field, null where only absence is allowed, a number out of range. It is never coerced, defaulted or ignored.";
    E6 "E6" "open objects are kept whole" "basic/processing"
        "Metadata, state, activity content, raw and custom values, results and patch operations belong to the producer: nothing in them is stripped.";
    E7 "E7" "keys belong to the producer" "basic/processing"
        "Names such as constructor or __proto__ are ordinary keys.";
    E8 "E8" "the empty string is a legal id and a legal delta" "basic/processing"
        "An empty subagentRunId names a subagent, not the parent agent.";
    E9 "E9" "a frame that is no event is fatal" "basic/processing"
        "What arrives is not a JSON object, or has no `type` that is a non-empty string, so that it cannot even be called an unknown event.";
    E10 "E10" "JSON is read as JSON.parse reads it" "basic/processing"
        "The last of several equal keys wins, and integers are judged by their value: 1.7e12 is one, 1.5 is not. A number beyond a double is null within an open value, with a warning, and malformed elsewhere.";
    E11 "E11" "half a surrogate pair is joined with its other half or replaced" "basic/processing"
        "Producers that cut text at UTF-16 units send an emoji in two deltas. The halves are joined; one that stays alone becomes U+FFFD with a warning. In an id it is malformed.";
    R1 "R1" "the first event is RUN_STARTED or RUN_ERROR" "events/lifecycle"
        "Nothing can happen outside a run, and a run can fail before it begins.";
    R2 "R2" "no RUN_STARTED while a run is active" "events/lifecycle"
        "Runs on one stream follow each other; they do not nest.";
    R3 "R3" "RUN_FINISHED finds nothing open" "events/lifecycle"
        "Every step, text message, reasoning message, reasoning span, tool call and announced subagent must have ended, and a run must be active.";
    R4 "R4" "after the end of a run only a new run, or a late failure, may come" "events/lifecycle"
        "After RUN_FINISHED only RUN_STARTED or RUN_ERROR may follow, after RUN_ERROR only RUN_STARTED.";
    R5 "R5" "RUN_ERROR fails the run, not the stream" "events/lifecycle"
        "It is delivered like any event; what was open is abandoned.";
    R6 "R6" "RUN_STARTED resets what is scoped to the run" "events/lifecycle"
        "Open items, owners, lanes, steps and subagents begin anew; messages and state stay.";
    R7 "R7" "the outcome of a run is success unless it says otherwise" "events/lifecycle"
        "interrupt waits for an answer, cancelled was stopped on purpose.";
    R8 "R8" "a stream that ends without a terminal event is truncated" "basic/transports"
        "It has no outcome and is never reported as a success; what was delivered stays.";
    R8a "R8a" "what follows a terminal event does not take back its outcome" "basic/transports"
        "A fault after RUN_FINISHED is reported, and the run that had ended stays ended.";
    R9 "R9" "the pending tool calls of a run" "events/tool-calls"
        "Those that the success outcome names, else those that the run started and that got no result.";
    R10 "R10" "a run keeps its runId, a stream its threadId, an interrupt its id" "basic/run-input"
        "RUN_FINISHED repeats the runId of its RUN_STARTED, all runs on a stream carry one threadId, and no two interrupts of a run share an id. A warning by default, fatal where ids are checked strictly.";
    R11 "R11" "a producer of a newer protocol version is served with a warning" "basic/versioning"
        "protocolVersion is MAJOR.MINOR and compared by component; one that cannot be read is treated as newer.";
    R12 "R12" "the messages of RUN_STARTED.input are history" "events/lifecycle"
        "A message that is not held is appended; one that is held is left alone.";
    S1 "S1" "START opens, CONTENT extends, END closes" "basic/patterns/streaming"
        "They are matched by id within their kind; a message and a tool call may share an id.";
    S2 "S2" "an item is opened once and extended only while open" "basic/patterns/streaming"
        "A START for an id that is open, and a CONTENT, ARGS or END for one that is not, breaks the sequence.";
    S3 "S3" "deltas concatenate in the order of arrival" "basic/patterns/streaming"
        "Nothing is trimmed or normalised; a character may be split between deltas.";
    S4 "S4" "items interleave freely" "basic/patterns/streaming"
        "Standalone events may come anywhere within a run.";
    S5 "S5" "a closed item may be opened again" "events/text-messages"
        "Its content continues where it ended; role, name and owner stay.";
    S6 "S6" "an absent role is assistant" "events/text-messages"
        "The role decides which message is assembled.";
    S7 "S7" "reasoning spans build no message" "events/reasoning"
        "REASONING_START and REASONING_END bracket, in a namespace of their own.";
    S8 "S8" "a step is finished by whoever started it" "events/lifecycle"
        "A step is open once for each owner, and STEP_FINISHED must carry the same owner.";
    S9 "S9" "a tool result is a message of its own" "events/tool-calls"
        "It follows the message that holds its call, after results that are there already.";
    C1 "C1" "chunks are expanded before anything is verified" "basic/patterns/streaming"
        "A chunk is a short spelling of START, CONTENT and END.";
    C2 "C2" "a first chunk carries what opens its item" "basic/patterns/streaming"
        "messageId, or toolCallId and toolCallName. No id is invented.";
    C3 "C3" "a lane holds one open chunk stream" "basic/patterns/streaming"
        "A chunk with another id, or of another kind, ends the one before it.";
    C4 "C4" "a chunk finds its lane, and only one" "basic/patterns/streaming"
        "By its id, by its tag, as the parent's stream, or as the only one of its kind; several are ambiguous.";
    C5 "C5" "a continuation may repeat a field only with the same value" "basic/patterns/streaming"
        "What the first chunk left out is established too: role assistant, no name, no parent message.";
    C6 "C6" "other events of a lane end its chunk stream" "basic/patterns/streaming"
        "Only RAW, activity, encrypted values and SUBAGENT_STARTED stand aside.";
    C7 "C7" "run-level events end every chunk stream" "basic/patterns/streaming"
        "The synthesized END comes before the event; the end of a subagent ends its lane.";
    C8 "C8" "the two spellings do not mix within one item" "basic/patterns/streaming"
        "An explicit event for an id that chunks hold ends the chunk stream and is then judged alone.";
    C9 "C9" "the metadata of a chunk rides on what it becomes" "basic/patterns/streaming"
        "rawEvent rides on the content, the timestamp is not carried.";
    C10 "C10" "the owner rides on every synthesized event" "events/subagents"
        "END included.";
    C11 "C11" "nothing is synthesized at the end of the input" "basic/transports"
        "An item that chunks left open is open in a truncated run.";
    O1 "O1" "no tag means the parent agent" "events/subagents"
        "null is malformed.";
    O2 "O2" "an item is continued by its owner" "events/subagents"
        "A tag that differs from the recorded owner is fatal; no tag always agrees.";
    O3 "O3" "owners are remembered until the run ends" "events/subagents"
        "For each kind, and after the item is closed; the first writer wins.";
    O4 "O4" "a tool call belongs to the owner of its message" "events/subagents"
        "Untagged it inherits that owner.";
    O5 "O5" "a subagent starts once and ends once" "events/subagents"
        "Its parent must have been announced in this run. Attribution without announcement is accepted.";
    O6 "O6" "encrypted values and activity deltas agree with the owner of their target" "events/subagents"
        "A tag that differs is fatal.";
    O7 "O7" "MESSAGES_SNAPSHOT sets the owners of what it contains" "events/state"
        "The history of RUN_STARTED only fills in owners that nobody claimed.";
    O8 "O8" "state belongs to the run" "events/subagents"
        "A tag on a state event says who sent it and nothing more.";
    A1 "A1" "metadata merges key by key, the last write wins" "basic/metadata"
        "Never recursively; null is data.";
    A2 "A2" "MESSAGES_SNAPSHOT reconciles by id" "events/state"
        "Held messages are replaced in place, new ones appended, absent ones dropped, except activity and reasoning messages that the snapshot does not track.";
    A3 "A3" "a tool call attaches to an assistant message" "events/tool-calls"
        "To the one that parentMessageId names, created if absent, else to one of its own.";
    A4 "A4" "text does not overwrite structure" "events/activity"
        "Text for the id of an activity message is dropped with a warning; text for a message of parts extends its last text part.";
    A5 "A5" "activity is replaced by snapshots and amended by deltas" "events/activity"
        "A delta without a target, or that does not apply, is skipped with a warning.";
    A6 "A6" "a state patch applies in full or not at all" "events/state"
        "One that fails leaves the state as it was, with a warning.";
    A7 "A7" "an encrypted value is stored with its target" "events/reasoning"
        "One for an unknown target is dropped with a warning.";
    A8 "A8" "a snapshot never changes" "events/state"
        "Later events build new ones.";
    A9 "A9" "tool call arguments are text" "events/tool-calls"
        "They are not complete before END, and are never validated.";
    A10 "A10" "repeated ids lose nothing" "events/tool-calls"
        "A repeated result replaces, a shared message id is kept apart, the last copy in a snapshot counts; each with a warning.";
    A11 "A11" "a message dropped by a snapshot has nowhere to grow" "events/state"
        "Its later events are delivered and assembled into nothing; one warning says so.";
    A12 "A12" "text and reasoning are told apart by kind" "events/reasoning"
        "Text under the id of a reasoning message makes a message of its own, with a warning, and the other way round.";
    B1 "B1" "THINKING events become reasoning events" "basic/versioning"
        "With generated ids; a title is lost, and the warning says so.";
    B2 "B2" "null of an older producer becomes absence" "basic/versioning"
        "In a fixed list of fields and nowhere else.";
    B3 "B3" "binary content parts become media parts" "basic/versioning"
        "By their MIME type; data before url.";
    P1 "P1" "the order of the stages" "basic/processing"
        "Source, compatibility, middleware, enforcement, expansion, verification, assembly; on every path.";
    P4 "P4" "the verdict is the same on every transport" "basic/processing"
        "What survives as JSON survives as protobuf.";
    T1 "T1" "server-sent events" "basic/transports/http-sse"
        "One JSON object an event; data lines joined with LF.";
    T1a "T1a" "frames that are no events" "basic/transports/http-sse"
        "[DONE] and empty data are decode failures unless a named tolerance skips them.";
    T2 "T2" "length-prefixed protobuf" "basic/transports/http-protobuf"
        "A 4-byte big-endian length, then one event; an unknown arm is dropped with a warning.";
    T3 "T3" "only the terminal event is success" "basic/transports"
        "Status 200 is not; a dropped connection is a truncation.";
    T4 "T4" "the run input is enforced before it is sent" "basic/run-input"
        "Unknown members are stripped, malformed ones fatal, activity messages never sent.";
    X1 "X1" "repair: what comes after RUN_FINISHED is of the run" "events/lifecycle"
        "Switched on as result-after-finish, against R4: RUN_FINISHED is held back until RUN_STARTED, RUN_ERROR, another RUN_FINISHED or the end. Of several the last is delivered, with the usage of all.";
    X2 "X2" "repair: a closed item is opened again for what comes late" "basic/patterns/streaming"
        "Switched on as reopen, against S2: it is closed again before its result, before RUN_FINISHED or by its own END. An END alone is dropped.";
    X3 "X3" "repair: a message that nothing opened is opened by its first content" "basic/patterns/streaming"
        "Switched on as open-unopened, against S2: it is closed before RUN_FINISHED or by its own END.";
    X4 "X4" "repair: frames that are no events are skipped" "basic/transports/http-sse"
        "Switched on as ignore-frames, against T1a: [DONE], null, empty data, and frames that the server named ping, endpoint and the like. One whose name speaks of an error is not skipped.";
    X5 "X5" "repair: what is open at RUN_FINISHED is closed before it" "events/lifecycle"
        "Switched on as close-at-finish, against R3: messages, tool calls, reasoning and steps. A subagent is not closed, for that would say that it succeeded.";
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Debug for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
