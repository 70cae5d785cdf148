//! A naive model of assembly: messages as plain JSON in a plain list, searched from the start for every
//! event, in the words of the rules.

use ag_ui_stream::Rule;
use serde_json::{Map, Value, json};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Class {
    Text,
    Reasoning,
    Activity,
}

fn class_of(message: &Value) -> Class {
    match text(message, "role") {
        "reasoning" => Class::Reasoning,
        "activity" => Class::Activity,
        _ => Class::Text,
    }
}

pub fn text<'v>(value: &'v Value, key: &str) -> &'v str {
    value[key].as_str().unwrap_or_default()
}

#[derive(Clone, Debug)]
struct Held {
    /// When it came, by which it is known wherever it stands.
    came: u64,
    message: Value,
}

/// An open item: its kind, its id, and the message that it streams into.
#[derive(Clone, Debug)]
struct Open {
    kind: &'static str,
    id: String,
    target: Option<u64>,
}

#[derive(Clone, Debug)]
pub struct Model {
    held: Vec<Held>,
    next: u64,
    open: Vec<Open>,
    started: Vec<String>,
    answered: Vec<String>,
    pub state: Value,
    pub pending: Vec<String>,
    pub warned: Vec<(Rule, u64)>,
}

impl Default for Model {
    fn default() -> Self {
        Self {
            held: Vec::new(),
            next: 0,
            open: Vec::new(),
            started: Vec::new(),
            answered: Vec::new(),
            state: json!({}),
            pending: Vec::new(),
            warned: Vec::new(),
        }
    }
}

impl Model {
    pub fn messages(&self) -> Vec<Value> {
        self.held.iter().map(|held| held.message.clone()).collect()
    }

    /// The kinds and ids of the open items.
    pub fn open(&self) -> impl Iterator<Item = (&'static str, &str)> {
        self.open.iter().map(|open| (open.kind, open.id.as_str()))
    }

    fn place(&self, came: u64) -> usize {
        self.held.iter().position(|held| held.came == came).unwrap()
    }

    fn at(&mut self, came: u64) -> &mut Value {
        let place = self.place(came);
        &mut self.held[place].message
    }

    fn add(&mut self, place: usize, message: Value) -> u64 {
        self.next += 1;
        self.held.insert(place, Held { came: self.next, message });
        self.next
    }

    fn push(&mut self, message: Value) -> u64 {
        self.add(self.held.len(), message)
    }

    /// The messages of an id, in order.
    fn all(&self, id: &str) -> Vec<&Held> {
        self.held.iter().filter(|held| text(&held.message, "id") == id).collect()
    }

    fn first(&self, id: &str) -> Option<&Held> {
        self.all(id).into_iter().next()
    }

    /// What text, or reasoning, under this id belongs to: a result only where it comes first and no other
    /// has text.
    fn target(&self, class: Class, id: &str) -> Option<u64> {
        let all = self.all(id);
        let own = all.iter().find(|held| class_of(&held.message) == class && held.message["role"] != "tool");
        let first = all.first().filter(|held| class_of(&held.message) == class);
        own.or(first).map(|held| held.came)
    }

    /// The first activity with this id.
    fn activity_of(&self, id: &str) -> Option<&Held> {
        self.all(id).into_iter().find(|held| class_of(&held.message) == Class::Activity)
    }

    fn call(&self, id: &str) -> Option<u64> {
        let has = |held: &&Held| {
            held.message["toolCalls"].as_array().is_some_and(|all| all.iter().any(|call| text(call, "id") == id))
        };
        self.held.iter().find(has).map(|held| held.came)
    }

    fn call_at(&mut self, came: u64, id: &str) -> &mut Value {
        let calls = self.at(came)["toolCalls"].as_array_mut().unwrap();
        calls.iter_mut().find(|call| text(call, "id") == id).unwrap()
    }

    fn find(&self, open: &Open) -> Option<u64> {
        match open.kind {
            "TEXT_MESSAGE" => self.target(Class::Text, &open.id),
            "REASONING_MESSAGE" => self.target(Class::Reasoning, &open.id),
            _ => self.call(&open.id),
        }
    }

    pub fn apply(&mut self, event: &Value, index: u64) {
        let kind = text(event, "type");
        let id = text(event, "messageId");
        let before = self.warned.len();
        match kind {
            "RUN_STARTED" => {
                (self.open, self.started, self.answered) = Default::default();
                for message in event["input"]["messages"].as_array().into_iter().flatten() {
                    if self.first(text(message, "id")).is_none() {
                        self.push(message.clone());
                    }
                }
            }
            "RUN_FINISHED" => {
                self.pending = self.started.iter().filter(|id| !self.answered.contains(id)).cloned().collect();
            }
            "RUN_ERROR" => {
                self.open.clear();
                self.pending.clear();
            }
            "TEXT_MESSAGE_START" => {
                let role = event["role"].as_str().unwrap_or("assistant");
                self.start("TEXT_MESSAGE", Class::Text, id, event, json!({"id": id, "role": role, "content": ""}));
            }
            "REASONING_MESSAGE_START" => {
                let message = json!({"id": id, "role": "reasoning", "content": ""});
                self.start("REASONING_MESSAGE", Class::Reasoning, id, event, message);
            }
            "TEXT_MESSAGE_CONTENT" | "TEXT_MESSAGE_END" => self.go_on("TEXT_MESSAGE", id, event),
            "REASONING_MESSAGE_CONTENT" | "REASONING_MESSAGE_END" => self.go_on("REASONING_MESSAGE", id, event),
            "TOOL_CALL_START" => self.start_call(event),
            "TOOL_CALL_ARGS" | "TOOL_CALL_END" => self.go_on("TOOL_CALL", text(event, "toolCallId"), event),
            "TOOL_CALL_RESULT" => self.result(event),
            "STATE_SNAPSHOT" => self.state = event["snapshot"].clone(),
            "STATE_DELTA" => match patched(&self.state, &event["delta"]) {
                Some(state) => self.state = state,
                None => self.warned.push((Rule::A6, 0)),
            },
            "ACTIVITY_SNAPSHOT" => self.activity(event),
            "ACTIVITY_DELTA" => match self.activity_of(id) {
                Some(held) => {
                    let (came, content) = (held.came, patched(&held.message["content"], &event["patch"]));
                    match content {
                        Some(content) => {
                            self.at(came)["content"] = content;
                            self.at(came)["activityType"] = event["activityType"].clone();
                        }
                        None => self.warned.push((Rule::A5, 0)),
                    }
                    merge(self.at(came), event);
                }
                None => self.warned.push((Rule::A5, 0)),
            },
            "REASONING_ENCRYPTED_VALUE" => {
                let entity = text(event, "entityId");
                let value = event["encryptedValue"].clone();
                if event["subtype"] == "tool-call" {
                    match self.call(entity) {
                        Some(came) => self.call_at(came, entity)["encryptedValue"] = value,
                        None => self.warned.push((Rule::A7, 0)),
                    }
                } else {
                    match self.target(Class::Text, entity).or_else(|| self.target(Class::Reasoning, entity)) {
                        Some(came) => self.at(came)["encryptedValue"] = value,
                        None => self.warned.push((Rule::A7, 0)),
                    }
                }
            }
            "MESSAGES_SNAPSHOT" => self.reconcile(event["messages"].as_array().unwrap()),
            _ => {}
        }
        // What streams without a place takes the first that comes under its id.
        for at in 0..self.open.len() {
            if self.open[at].target.is_none() {
                self.open[at].target = self.find(&self.open[at]);
            }
        }
        self.warned.iter_mut().skip(before).for_each(|warned| warned.1 = index);
    }

    fn start(&mut self, kind: &'static str, class: Class, id: &str, event: &Value, message: Value) {
        let target = self.target(class, id).or_else(|| match self.first(id).map(|held| class_of(&held.message)) {
            Some(Class::Activity) => {
                self.warned.push((Rule::A4, 0));
                None
            }
            other => {
                self.warned.extend(other.map(|_| (Rule::A12, 0)));
                Some(self.push(owned(message, event)))
            }
        });
        self.open.push(Open { kind, id: id.to_owned(), target });
        if let Some(came) = target {
            merge(self.at(came), event);
        }
    }

    fn go_on(&mut self, kind: &str, id: &str, event: &Value) {
        let at = self.open.iter().position(|open| open.kind == kind && open.id == id).unwrap();
        let target = self.open[at].target;
        if text(event, "type").ends_with("END") {
            self.open.remove(at);
        }
        let Some(came) = target else { return };
        let delta = text(event, "delta");
        if kind == "TOOL_CALL" {
            let call = self.call_at(came, id);
            call["function"]["arguments"] = json!(format!("{}{delta}", text(&call["function"], "arguments")));
            merge(call, event);
            return;
        }
        let message = self.at(came);
        match &mut message["content"] {
            Value::Array(parts) if !delta.is_empty() => match parts.last_mut() {
                Some(part) if part["type"] == "text" => part["text"] = json!(format!("{}{delta}", text(part, "text"))),
                _ => parts.push(json!({"type": "text", "text": delta})),
            },
            Value::Array(_) => {}
            Value::Null if delta.is_empty() => {
                message.as_object_mut().unwrap().remove("content");
            }
            _ => message["content"] = json!(format!("{}{delta}", text(message, "content"))),
        }
        merge(message, event);
    }

    fn start_call(&mut self, event: &Value) {
        let id = text(event, "toolCallId");
        if !self.started.iter().any(|started| started == id) {
            self.started.push(id.to_owned());
        }
        let came = self.call(id).unwrap_or_else(|| {
            // Only a parent that is named can be held; a call's own message is always made.
            let named = event["parentMessageId"].as_str();
            let held = named.and_then(|parent| self.target(Class::Text, parent));
            let held = held.filter(|came| text(self.at(*came), "role") == "assistant");
            let came = held.unwrap_or_else(|| {
                let taken = named.is_some_and(|parent| self.first(parent).is_some());
                let made = named.filter(|_| !taken).unwrap_or(id);
                self.push(owned(json!({"id": made, "role": "assistant"}), event))
            });
            let call =
                json!({"id": id, "type": "function", "function": {"name": event["toolCallName"], "arguments": ""}});
            let message = self.at(came).as_object_mut().unwrap();
            message.entry("toolCalls").or_insert_with(|| json!([])).as_array_mut().unwrap().push(call);
            came
        });
        self.open.push(Open { kind: "TOOL_CALL", id: id.to_owned(), target: Some(came) });
        merge(self.call_at(came, id), event);
    }

    fn result(&mut self, event: &Value) {
        let (id, call) = (text(event, "messageId"), text(event, "toolCallId"));
        self.answered.push(call.to_owned());
        let mut message = json!({"id": id, "role": "tool", "content": event["content"], "toolCallId": call});
        message = owned(message, event);
        merge(&mut message, event);
        let same = |held: &&Held| held.message["role"] == "tool" && text(&held.message, "toolCallId") == call;
        let same = self.all(id).into_iter().find(same).map(|held| held.came);
        if self.first(id).is_some() {
            self.warned.push((Rule::A10, 0));
        }
        if let Some(came) = same {
            *self.at(came) = message;
            return;
        }
        let mut place = self.held.len();
        if let Some(caller) = self.call(call) {
            place = self.place(caller) + 1;
            while self.held.get(place).is_some_and(|held| held.message["role"] == "tool") {
                place += 1;
            }
        }
        self.add(place, message);
    }

    fn activity(&mut self, event: &Value) {
        let id = text(event, "messageId");
        let message =
            json!({"id": id, "role": "activity", "activityType": event["activityType"], "content": event["content"]});
        let mut message = owned(message, event);
        let replaces = event["replace"] != false;
        let Some(held) = self.activity_of(id).or_else(|| self.first(id)) else {
            merge(&mut message, event);
            self.push(message);
            return;
        };
        let (came, class) = (held.came, class_of(&held.message));
        if class != Class::Activity && !replaces {
            return;
        }
        if class == Class::Activity && replaces {
            if let Some(metadata) = self.at(came).get("metadata").cloned() {
                message["metadata"] = metadata;
            }
        }
        if replaces {
            *self.at(came) = message;
        }
        merge(self.at(came), event);
        if class != Class::Activity {
            let into_it = |open: &&mut Open| open.target == Some(came);
            let lost = self.open.iter_mut().filter(into_it).map(|open| open.target = None).count();
            if lost > 0 {
                self.warned.push((Rule::A4, 0));
            }
        }
    }

    fn reconcile(&mut self, copies: &[Value]) {
        let mut wanted: Vec<&Value> = Vec::new();
        for copy in copies {
            match wanted.iter_mut().find(|other| other["id"] == copy["id"]) {
                Some(other) => {
                    *other = copy;
                    self.warned.push((Rule::A10, 0));
                }
                None => wanted.push(copy),
            }
        }
        let has = |class| wanted.iter().any(|copy| class_of(copy) == class);
        let mut result: Vec<Value> = Vec::new();
        let mut placed: Vec<&Value> = Vec::new();
        for (at, held) in self.held.iter().enumerate() {
            let copy = wanted.iter().find(|copy| copy["id"] == held.message["id"]);
            // Of several with one id, the one of the copy's kind, else the first in order.
            let chosen = copy.map(|copy| {
                let of_id = |kind: Option<Class>| {
                    self.held.iter().position(|other| {
                        other.message["id"] == copy["id"] && kind.is_none_or(|kind| class_of(&other.message) == kind)
                    })
                };
                of_id(Some(class_of(copy))).or_else(|| of_id(None))
            });
            match (copy, chosen) {
                (Some(copy), Some(chosen)) if chosen == Some(at) => {
                    result.push((*copy).clone());
                    placed.push(copy);
                }
                _ => match class_of(&held.message) {
                    Class::Text => {}
                    class if has(class) => {}
                    _ => result.push(held.message.clone()),
                },
            }
        }
        result.extend(wanted.iter().filter(|copy| !placed.contains(copy)).map(|copy| (*copy).clone()));
        self.held.clear();
        for message in result {
            self.push(message);
        }
        // One warning for each message, however many items stream into it.
        let mut lost = std::collections::BTreeSet::new();
        for at in 0..self.open.len() {
            let found = self.find(&self.open[at]);
            lost.extend(self.open[at].target.filter(|_| found.is_none()));
            self.open[at].target = found;
        }
        self.warned.extend(lost.iter().map(|_| (Rule::A11, 0)));
    }
}

fn owned(mut message: Value, event: &Value) -> Value {
    if let Some(owner) = event.get("subagentRunId") {
        message["subagentRunId"] = owner.clone();
    }
    message
}

fn merge(target: &mut Value, event: &Value) {
    if let Some(Value::Object(new)) = event.get("metadata") {
        let held = target.as_object_mut().unwrap().entry("metadata").or_insert_with(|| json!({}));
        held.as_object_mut().unwrap().extend(new.clone());
    }
}

/// A patch of `add`, `remove` and `replace` on members of an object.
fn patched(document: &Value, patch: &Value) -> Option<Value> {
    let operations = patch.as_array().filter(|all| !all.is_empty());
    let Some(operations) = operations else { return Some(document.clone()) };
    let mut members: Map<String, Value> = document.as_object()?.clone();
    for operation in operations {
        let key = text(operation, "path").strip_prefix('/')?;
        match text(operation, "op") {
            "add" => {
                members.insert(key.to_owned(), operation["value"].clone());
            }
            "replace" => *members.get_mut(key)? = operation["value"].clone(),
            _ => {
                members.remove(key)?;
            }
        }
    }
    Some(members.into())
}
