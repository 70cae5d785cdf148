//! Generates streams from a seed: mostly legal, with few ids and owners, so that they collide.

use serde_json::{Map, Value, json};

/// The stream with this number, the same every time: each event as JSON.
pub fn stream(seed: u64) -> Vec<String> {
    let mut writer = Writer::new(seed);
    writer.run();
    while writer.random.one_in(5) {
        writer.run();
    }
    let Writer { mut random, mut events, .. } = writer;
    if random.one_in(3) {
        for _ in 0..=random.below(2) {
            mutate(&mut random, &mut events);
        }
    }
    events.iter().map(|event| as_sent(&event.to_string())).collect()
}

/// What `Value` cannot hold stands in it by a name.
fn as_sent(json: &str) -> String {
    json.replace("<high>", r"\ud83d").replace("<low>", r"\ude00").replace(r#""<huge>""#, "9e9999")
}

/// Numbers by SplitMix64.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.next() % bound as u64).unwrap()
    }

    fn one_in(&mut self, number: usize) -> bool {
        self.below(number) == 0
    }

    fn pick<'a, T: ?Sized>(&mut self, from: &[&'a T]) -> &'a T {
        from[self.below(from.len())]
    }

    fn choose(&mut self, from: Value) -> Value {
        let Value::Array(mut from) = from else { panic!("an array") };
        let index = self.below(from.len());
        from.swap_remove(index)
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Text,
    Call,
    Thought,
    Span,
}

impl Kind {
    /// The key of the id; the types that open, extend and close.
    fn words(self) -> (&'static str, [&'static str; 3]) {
        match self {
            Kind::Text => ("messageId", ["TEXT_MESSAGE_START", "TEXT_MESSAGE_CONTENT", "TEXT_MESSAGE_END"]),
            Kind::Call => ("toolCallId", ["TOOL_CALL_START", "TOOL_CALL_ARGS", "TOOL_CALL_END"]),
            Kind::Thought => {
                ("messageId", ["REASONING_MESSAGE_START", "REASONING_MESSAGE_CONTENT", "REASONING_MESSAGE_END"])
            }
            // Nothing extends a span.
            Kind::Span => ("messageId", ["REASONING_START", "CUSTOM", "REASONING_END"]),
        }
    }

    /// Ids that other kinds have too, and ids of its own.
    fn ids(self) -> [&'static str; 3] {
        match self {
            Kind::Text => ["a", "b", "text"],
            Kind::Call => ["a", "call", "tool"],
            Kind::Thought | Kind::Span => ["b", "thought", "why"],
        }
    }
}

const DELTAS: &[&str] = &["x", "", " y\n", "Ä", "🍎", "<high>", "<low>", "1<high><low>"];

struct Writer {
    random: Random,
    events: Vec<Value>,
    open: Vec<(Kind, &'static str)>,
    steps: Vec<(&'static str, Option<&'static str>)>,
    subagents: Vec<&'static str>,
    started: Vec<&'static str>,
    runs: usize,
}

impl Writer {
    fn new(seed: u64) -> Self {
        let mut random = Random(seed);
        random.next();
        Self {
            random,
            events: Vec::new(),
            open: Vec::new(),
            steps: Vec::new(),
            subagents: Vec::new(),
            started: Vec::new(),
            runs: 0,
        }
    }

    /// One run, mostly closed as it should be.
    fn run(&mut self) {
        self.runs += 1;
        self.started.clear();
        let run = format!("r{}", self.runs);
        let mut started = json!({"type": "RUN_STARTED", "threadId": "t", "runId": run});
        if self.random.one_in(6) {
            let messages = self.messages();
            started["input"] = json!({"threadId": "t", "runId": run, "messages": messages, "tools": [], "context": []});
        }
        self.events.push(started);
        for _ in 0..self.random.below(12) {
            self.step();
        }
        if self.random.one_in(15) {
            self.events.push(json!({"type": "RUN_ERROR", "message": "no"}));
            self.open.clear();
            self.steps.clear();
            self.subagents.clear();
            return;
        }
        while !self.open.is_empty() {
            self.close();
        }
        while let Some((name, owner)) = self.steps.pop() {
            self.push(json!({"type": "STEP_FINISHED", "stepName": name}), owner);
        }
        while let Some(id) = self.subagents.pop() {
            self.push(json!({"type": "SUBAGENT_FINISHED"}), Some(id));
        }
        let mut finished = json!({"type": "RUN_FINISHED", "threadId": "t", "runId": run});
        match self.random.below(8) {
            0 => finished["outcome"] = json!({"type": "success", "pendingToolCallIds": ["call"]}),
            1 => finished["outcome"] = json!({"type": "interrupt", "interrupts": [{"id": "i", "reason": "why"}]}),
            2 => finished["outcome"] = json!({"type": "cancelled"}),
            3 => finished["result"] = json!({"n": 1}),
            _ => {}
        }
        self.events.push(finished);
        if self.random.one_in(20) {
            self.events.push(json!({"type": "RUN_ERROR", "message": "late"}));
        }
    }

    /// The owner of most things with this id: so that nobody else's is taken by chance too often.
    fn owner(&mut self, id: &str) -> Option<&'static str> {
        if self.random.one_in(40) {
            return Some(self.random.pick(&["s", "z", ""]));
        }
        match id {
            "tool" | "why" => Some("s"),
            _ => None,
        }
    }

    fn push(&mut self, mut event: Value, owner: Option<&str>) {
        if let Some(owner) = owner {
            event["subagentRunId"] = json!(owner);
        }
        if self.random.one_in(8) {
            event["metadata"] =
                self.random.choose(json!([{"k": 1}, {"k": null, "j": {"a": [1]}}, {}, {"j": {"b": 2}}]));
        }
        self.events.push(event);
    }

    fn step(&mut self) {
        match self.random.below(26) {
            0..5 => self.start(),
            5..9 => self.extend(),
            9..11 => self.close(),
            11..15 => self.chunk(),
            15 => self.result(),
            16 => {
                let snapshot = self.random.choose(
                    json!([{"n": 1, "list": [1, 2]}, {"o": {"x": null}}, {"n": "<huge>"}, null, 0, "", [1], {"n": "<high>"}]),
                );
                self.push(json!({"type": "STATE_SNAPSHOT", "snapshot": snapshot}), None);
            }
            17 => {
                let delta = self.patch();
                self.push(json!({"type": "STATE_DELTA", "delta": delta}), None);
            }
            18 => self.activity(),
            19 => {
                let messages = self.messages();
                self.push(json!({"type": "MESSAGES_SNAPSHOT", "messages": messages}), None);
            }
            20 => {
                let (subtype, id) = match self.random.below(3) {
                    0 => ("tool-call", self.random.pick(&["a", "call"])),
                    _ => ("message", self.random.pick(&["a", "b", "text", "thought", "plan"])),
                };
                self.push(
                    json!({"type": "REASONING_ENCRYPTED_VALUE", "subtype": subtype, "entityId": id, "encryptedValue": "e"}),
                    None,
                );
            }
            21..23 => self.bracket(),
            23 => self.push(json!({"type": "RAW", "event": {"n": 1, "unknown": null}}), None),
            24 => self.push(json!({"type": "CUSTOM", "name": "c", "value": [1.5, "x"]}), None),
            _ => {
                let event = self.random.choose(json!([
                    {"type": "FUTURE_EVENT", "n": 1},
                    {"type": "THINKING_START"},
                    {"type": "THINKING_END"},
                    {"type": "CUSTOM", "name": "c", "value": {}, "rawEvent": {"a": 1}, "timestamp": 1.7e12},
                    {"type": "RAW", "event": null, "source": "there", "unknown": 1}
                ]));
                self.events.push(event);
            }
        }
    }

    fn start(&mut self) {
        let kind = [Kind::Text, Kind::Text, Kind::Call, Kind::Call, Kind::Thought, Kind::Span][self.random.below(6)];
        let id = self.random.pick(&kind.ids());
        if self.open.contains(&(kind, id)) {
            return;
        }
        let (key, types) = kind.words();
        let mut event = json!({"type": types[0], key: id});
        match kind {
            Kind::Text => {
                if self.random.one_in(2) {
                    event["role"] = json!(self.random.pick(&["assistant", "user", "system", "developer"]));
                }
                if self.random.one_in(6) {
                    event["name"] = json!("name");
                }
            }
            Kind::Call => {
                event["toolCallName"] = json!(if self.random.one_in(8) { "other" } else { id });
                if self.random.one_in(2) {
                    event["parentMessageId"] = json!(self.random.pick(&["a", "b", "text", "new", "plan", "thought"]));
                }
            }
            Kind::Thought => event["role"] = json!("reasoning"),
            Kind::Span => {}
        }
        let owner = self.owner(id);
        self.push(event, owner);
        self.open.push((kind, id));
    }

    fn extend(&mut self) {
        if self.open.is_empty() {
            return self.start();
        }
        let (kind, id) = self.open[self.random.below(self.open.len())];
        let (key, types) = kind.words();
        if kind == Kind::Span {
            return self.push(json!({"type": "CUSTOM", "name": "within", "value": 1}), None);
        }
        let delta = self.delta();
        let owner = if self.random.one_in(4) { self.owner(id) } else { None };
        self.push(json!({"type": types[1], key: id, "delta": delta}), owner);
    }

    fn delta(&mut self) -> &'static str {
        // Halves of pairs now and then.
        let count = if self.random.one_in(10) { DELTAS.len() } else { DELTAS.len() - 3 };
        DELTAS[self.random.below(count)]
    }

    fn close(&mut self) {
        if self.open.is_empty() {
            return;
        }
        let index = self.random.below(self.open.len());
        let (kind, id) = self.open.swap_remove(index);
        let (key, types) = kind.words();
        let owner = if self.random.one_in(4) { self.owner(id) } else { None };
        self.push(json!({"type": types[2], key: id}), owner);
    }

    fn chunk(&mut self) {
        let kind = [Kind::Text, Kind::Call, Kind::Thought][self.random.below(3)];
        let id = self.random.pick(&kind.ids());
        if self.open.contains(&(kind, id)) {
            return;
        }
        let owner = self.owner(id);
        for round in 0..=self.random.below(3) {
            let delta = self.delta();
            let (r#type, key) = match kind {
                Kind::Call => ("TOOL_CALL_CHUNK", "toolCallId"),
                Kind::Thought => ("REASONING_MESSAGE_CHUNK", "messageId"),
                _ => ("TEXT_MESSAGE_CHUNK", "messageId"),
            };
            let mut event = json!({"type": r#type});
            if round == 0 || self.random.one_in(2) {
                event[key] = json!(id);
                if kind == Kind::Call {
                    event["toolCallName"] = json!(id);
                } else if kind == Kind::Text && self.random.one_in(4) {
                    event["role"] = json!(self.random.pick(&["assistant", "assistant", "user"]));
                }
            }
            if !self.random.one_in(5) {
                event["delta"] = json!(delta);
            }
            if self.random.one_in(10) {
                event["rawEvent"] = json!({"a": 1});
            }
            if self.random.one_in(10) {
                event["timestamp"] = json!(5);
            }
            let owner = if round == 0 || self.random.one_in(2) { owner } else { None };
            self.push(event, owner);
            if self.random.one_in(6) {
                self.step();
            }
        }
    }

    fn result(&mut self) {
        let call = self.random.pick(&["a", "call", "tool", "none"]);
        let message = self.random.pick(&["a", "result", "result 2", "plan"]);
        let content = self.random.choose(json!(["", "done", [{"type": "text", "text": "done"}]]));
        let owner = self.owner(call);
        self.push(
            json!({"type": "TOOL_CALL_RESULT", "messageId": message, "toolCallId": call, "content": content}),
            owner,
        );
    }

    fn patch(&mut self) -> Value {
        (0..self.random.below(3))
            .map(|_| {
                let path = |random: &mut Random| {
                    random.pick(&["/n", "/list", "/list/0", "/list/-", "/list/5", "/o/x", "/o", "", "/m~1~0"])
                };
                let op = self.random.pick(&["add", "add", "replace", "remove", "test", "move", "copy"]);
                let mut operation = json!({"op": op, "path": path(&mut self.random)});
                match op {
                    "move" | "copy" => operation["from"] = json!(path(&mut self.random)),
                    "remove" => {}
                    _ => operation["value"] = self.random.choose(json!([1, null, [1, 2], {"x": 1}, "<huge>", {}])),
                }
                operation
            })
            .collect()
    }

    fn activity(&mut self) {
        let id = self.random.pick(&["plan", "plan", "plan", "a", "text", "result"]);
        let owner = if id == "plan" { None } else { self.owner(id) };
        let kind = self.random.pick(&["steps", "steps", "search"]);
        let mut event = json!({"type": "ACTIVITY_SNAPSHOT", "messageId": id, "activityType": kind});
        if self.random.one_in(2) {
            event["type"] = json!("ACTIVITY_DELTA");
            event["patch"] = self.patch();
        } else {
            event["content"] = self.random.choose(json!([{}, {"n": 1}, {"list": [1, 2], "o": {"x": 1}}]));
            if self.random.one_in(3) {
                event["replace"] = json!(self.random.one_in(2));
            }
        }
        self.push(event, owner);
    }

    /// Steps and subagents.
    fn bracket(&mut self) {
        match self.random.below(4) {
            0 => {
                let step = (self.random.pick(&["plan", "act"]), [None, Some("s")][self.random.below(2)]);
                if !self.steps.contains(&step) {
                    self.push(json!({"type": "STEP_STARTED", "stepName": step.0}), step.1);
                    self.steps.push(step);
                }
            }
            1 => {
                if let Some((name, owner)) = self.steps.pop() {
                    self.push(json!({"type": "STEP_FINISHED", "stepName": name}), owner);
                }
            }
            2 => {
                let id = self.random.pick(&["s", "z"]);
                if !self.started.contains(&id) {
                    self.push(json!({"type": "SUBAGENT_STARTED", "name": "helper"}), Some(id));
                    self.subagents.push(id);
                    self.started.push(id);
                }
            }
            _ => {
                if let Some(id) = self.subagents.pop() {
                    let event = self.random.choose(json!([
                        {"type": "SUBAGENT_FINISHED"},
                        {"type": "SUBAGENT_FINISHED", "outcome": {"type": "suspended", "interruptIds": ["i"]}},
                        {"type": "SUBAGENT_ERROR", "message": "no"}
                    ]));
                    self.push(event, Some(id));
                }
            }
        }
    }

    fn messages(&mut self) -> Value {
        let mut messages = Vec::<Value>::new();
        for _ in 0..self.random.below(4) {
            let id = self.random.pick(&["a", "b", "text", "thought", "plan", "result", "user"]);
            if messages.iter().any(|message| message["id"] == id) && !self.random.one_in(10) {
                continue;
            }
            let mut message = match (id, self.random.below(8)) {
                ("thought", 1..) | (_, 0) => json!({"role": "reasoning", "content": "thus"}),
                ("plan", 2..) | (_, 1) => json!({"role": "activity", "activityType": "steps", "content": {"n": 2}}),
                ("result", 3..) | (_, 2) => json!({"role": "tool", "toolCallId": "call", "content": "old"}),
                ("user", _) => json!({"role": "user", "content": [{"type": "text", "text": "Hi"}, {"type": "future"}]}),
                (_, 3) => json!({"role": "user", "content": [{"type": "text", "text": "Hi"}]}),
                (_, 4) => json!({"role": "assistant", "toolCalls": [
                    {"id": "call", "type": "function", "function": {"name": "call", "arguments": "{"}}
                ]}),
                (_, 5) => json!({"role": "system", "content": "be", "name": "n"}),
                _ => json!({"role": "assistant", "content": "before"}),
            };
            message["id"] = json!(id);
            if self.random.one_in(8) {
                message["metadata"] = json!({"k": 0});
            }
            if self.random.one_in(20) {
                message["subagentRunId"] = json!("s");
            }
            messages.push(message);
        }
        json!(messages)
    }
}

/// Something wrong, or only odd.
fn mutate(random: &mut Random, events: &mut Vec<Value>) {
    if events.is_empty() {
        return;
    }
    let index = random.below(events.len());
    match random.below(9) {
        0 if events.len() > 1 => {
            events.remove(index);
        }
        1 => events.insert(index, events[index].clone()),
        2 => {
            let other = random.below(events.len());
            events.swap(index, other);
        }
        3 => events.truncate(index),
        4 => {
            let keys =
                ["unknown", "__proto__", "constructor", "subagentRunId", "timestamp", "role", "name", "metadata"];
            let key = random.pick(&keys);
            let value = random.choose(json!([1, "s", null, {}, -1.5, 1.7e12, "assistant"]));
            object(random, &mut events[index]).insert(key.to_owned(), value);
        }
        5 => {
            let target = object(random, &mut events[index]);
            if let Some(key) = nth_key(random, target) {
                target.remove(&key);
            }
        }
        _ => {
            let target = object(random, &mut events[index]);
            if let Some(key) = nth_key(random, target) {
                let value = random.choose(json!([
                    null,
                    1,
                    "",
                    "future",
                    [],
                    {},
                    true,
                    1.5,
                    "<huge>",
                    "<high>",
                    "a",
                    "s",
                    "user"
                ]));
                target.insert(key, value);
            }
        }
    }
}

fn nth_key(random: &mut Random, object: &Map<String, Value>) -> Option<String> {
    let keys: Vec<_> = object.keys().collect();
    if keys.is_empty() { None } else { Some(keys[random.below(keys.len())].clone()) }
}

/// The event, or now and then an object within it.
fn object<'v>(random: &mut Random, value: &'v mut Value) -> &'v mut Map<String, Value> {
    let is_nested = |value: &Value| match value {
        Value::Object(_) => true,
        Value::Array(elements) => elements.iter().any(Value::is_object),
        _ => false,
    };
    let nested: Vec<String> = value
        .as_object()
        .into_iter()
        .flatten()
        .filter(|(_, member)| is_nested(member))
        .map(|(key, _)| key.clone())
        .collect();
    if nested.is_empty() || random.one_in(3) {
        return value.as_object_mut().unwrap();
    }
    let key = &nested[random.below(nested.len())];
    match &mut value[key] {
        Value::Array(elements) => {
            let element = elements.iter_mut().find(|element| element.is_object()).unwrap();
            object(random, element)
        }
        member => object(random, member),
    }
}
