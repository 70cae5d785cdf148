//! The document: a lane for each agent, the state, and what went wrong. What came from the wire is only ever
//! the text of a node.

use std::cell::RefCell;
use std::collections::HashMap;

use ag_ui_stream::event::Event;
use ag_ui_stream::event::SubagentFinishedOutcome;
use ag_ui_stream::snapshot::{RunOutcome, SubagentStatus, Update};
use ag_ui_stream::{Message, Snapshot};
use wasm_bindgen::prelude::*;
use web_sys::{Document, Element, HtmlButtonElement, HtmlInputElement, Text};

pub struct View {
    document: Document,
    agent: HtmlInputElement,
    say: HtmlInputElement,
    button: HtmlButtonElement,
    drawn: RefCell<Drawn>,
}

/// What there is in the document, by id.
#[derive(Default)]
struct Drawn {
    /// By owner; the agent's is the one without a name.
    lanes: HashMap<String, Lane>,
    messages: HashMap<String, Element>,
    /// What grows: the texts of messages, and the arguments of tool calls.
    texts: HashMap<String, Text>,
    arguments: HashMap<String, Text>,
}

#[derive(Clone)]
struct Lane {
    status: Element,
    messages: Element,
}

impl View {
    /// `None` where the document is another one.
    pub fn new() -> Option<Self> {
        let document = web_sys::window()?.document()?;
        let agent = document.get_element_by_id("agent")?.dyn_into().ok()?;
        let say = document.get_element_by_id("say")?.dyn_into().ok()?;
        let button = document.get_element_by_id("button")?.dyn_into().ok()?;
        let view = Self { document, agent, say, button, drawn: RefCell::default() };
        view.lane("", "agent");
        Some(view)
    }

    pub fn fill(&self, agent: Option<&str>, say: Option<&str>) {
        if let Some(agent) = agent {
            self.agent.set_value(agent);
        }
        self.say.set_value(say.unwrap_or_default());
    }

    pub fn on_submit(&self, submit: Closure<dyn FnMut()>) {
        // The form's own handler keeps the page from being loaded anew.
        let listened = self.document.add_event_listener_with_callback("ask", submit.as_ref().unchecked_ref());
        if listened.is_ok() {
            submit.forget();
        }
    }

    /// The address of the agent, and what was said to it. The button stops it from here on.
    pub fn take_form(&self) -> (String, String) {
        let said = self.say.value();
        self.say.set_value("");
        self.button.set_text_content(Some("Stop"));
        self.set("problem", "");
        self.set("warnings", "");
        (self.agent.value(), said)
    }

    /// Nothing comes any more.
    pub fn stopped(&self, problem: Option<&str>) {
        self.button.set_text_content(Some("Send"));
        if let Some(problem) = problem {
            self.set("problem", problem);
        }
        if self.document.get_element_by_id("outcome").and_then(|shown| shown.text_content()).as_deref()
            == Some("running")
        {
            self.outcome("stopped");
        }
    }

    fn outcome(&self, word: &str) {
        for shown in [self.document.get_element_by_id("outcome"), Some(self.lane("", "agent").status)].iter().flatten()
        {
            shown.set_class_name(word);
            shown.set_text_content(Some(word));
        }
    }

    /// What an event changed, and no more than that: a delta costs its own length.
    pub fn draw(&self, update: &Update) {
        if let Some(warning) = update.warning() {
            let line = self.element("li", "");
            line.set_text_content(Some(&warning.to_string()));
            self.append("warnings", &line);
        }
        if update.changed_run() {
            self.draw_run(update.snapshot());
        }
        if update.changed_state() {
            self.set("state", &format!("{:#}", update.snapshot().state()));
        }
        let drawn = self.drawn.borrow();
        let grown = match update.event() {
            Some(Event::TextMessageContent(e)) => Some((drawn.texts.get(e.message_id.as_str()), &e.delta)),
            Some(Event::ReasoningMessageContent(e)) => Some((drawn.texts.get(e.message_id.as_str()), &e.delta)),
            Some(Event::ToolCallArgs(e)) => Some((drawn.arguments.get(e.tool_call_id.as_str()), &e.delta)),
            _ => None,
        };
        let appended = grown.is_some_and(|(text, delta)| text.is_some_and(|text| text.append_data(delta).is_ok()));
        drop(drawn);
        match update.message() {
            _ if appended => {}
            Some(message) => self.draw_message(message),
            None if update.changed_messages() => update.snapshot().messages().iter().for_each(|m| self.draw_message(m)),
            None => {}
        }
    }

    /// How the run and its subagents stand.
    pub fn draw_run(&self, snapshot: &Snapshot) {
        let Some(run) = snapshot.run() else { return };
        self.outcome(run.outcome.as_str());
        match &run.outcome {
            RunOutcome::Error { message, .. } => self.set("problem", message),
            RunOutcome::Interrupt { interrupts, .. } => {
                let questions = interrupts.iter().map(|asked| asked.message.as_deref().unwrap_or(&asked.reason));
                self.set("problem", &questions.collect::<Vec<_>>().join("\n"));
            }
            _ => {}
        }
        for subagent in run.subagents() {
            let (class, words) = match &subagent.status {
                SubagentStatus::Running => ("running", "running"),
                SubagentStatus::Finished(SubagentFinishedOutcome::Suspended(_)) => ("", "suspended"),
                SubagentStatus::Finished(_) => ("", "finished"),
                SubagentStatus::Error { message, .. } => ("error", &**message),
                _ => ("error", "abandoned"),
            };
            let status = self.lane(subagent.subagent_run_id.as_str(), &subagent.name).status;
            status.set_class_name(class);
            status.set_text_content(Some(words));
        }
    }

    /// A message, new or drawn anew.
    pub fn draw_message(&self, message: &Message) {
        let owner = message.subagent_run_id().map_or("", |owner| owner.as_str());
        let lane = self.lane(owner, owner);
        let id = message.id().as_str();
        let drawn = self.drawn.borrow().messages.get(id).cloned();
        let article = drawn.unwrap_or_else(|| {
            let article = self.element("article", message.role().as_str());
            let _ = lane.messages.append_child(&article);
            self.drawn.borrow_mut().messages.insert(id.to_owned(), article.clone());
            article
        });
        // Whatever it held goes.
        article.set_text_content(None);
        let role = self.element("h3", "");
        role.set_text_content(Some(message.role().as_str()));
        let _ = article.append_child(&role);
        match message {
            Message::Activity(activity) => {
                self.text(&article, "pre", &format!("{} {:#}", activity.activity_type, activity.content));
            }
            _ => {
                let text = self.text(&article, "p", &message.text().unwrap_or_default().to_cow());
                self.drawn.borrow_mut().texts.insert(id.to_owned(), text);
            }
        }
        for call in message.tool_calls() {
            let drawn = self.element("div", "call");
            let name = self.element("b", "");
            name.set_text_content(Some(&call.function.name));
            let _ = drawn.append_child(&name);
            let arguments = self.text(&drawn, "code", &call.function.arguments.to_cow());
            let _ = article.append_child(&drawn);
            self.drawn.borrow_mut().arguments.insert(call.id.as_str().to_owned(), arguments);
        }
    }

    /// The lane of an owner, there at the latest now.
    fn lane(&self, owner: &str, name: &str) -> Lane {
        if let Some(lane) = self.drawn.borrow().lanes.get(owner) {
            return lane.clone();
        }
        let section = self.element("section", "lane");
        let [title, status, scrolled, messages] = ["h2", "small", "div", "div"].map(|tag| self.element(tag, ""));
        title.set_text_content(Some(name));
        let _ = scrolled.append_child(&messages);
        for part in [&title, &status, &scrolled] {
            let _ = section.append_child(part);
        }
        self.append("lanes", &section);
        let lane = Lane { status, messages };
        self.drawn.borrow_mut().lanes.insert(owner.to_owned(), lane.clone());
        lane
    }

    /// A text in an element of its own.
    fn text(&self, parent: &Element, tag: &str, text: &str) -> Text {
        let node = self.document.create_text_node(text);
        let holder = self.element(tag, "");
        let _ = holder.append_child(&node);
        let _ = parent.append_child(&holder);
        node
    }

    fn element(&self, tag: &str, class: &str) -> Element {
        let element = self.document.create_element(tag).expect_throw("the name of a tag");
        element.set_class_name(class);
        element
    }

    fn append(&self, id: &str, child: &Element) {
        if let Some(element) = self.document.get_element_by_id(id) {
            let _ = element.append_child(child);
        }
    }

    fn set(&self, id: &str, text: &str) {
        if let Some(element) = self.document.get_element_by_id(id) {
            element.set_text_content(Some(text));
        }
    }
}
