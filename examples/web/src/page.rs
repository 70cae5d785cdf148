//! Runs: what is asked goes out by `fetch`, and the body that comes back is read while it streams.

use std::cell::RefCell;
use std::error::Error;
use std::rc::Rc;
use std::time::{Duration, SystemTime};

use ag_ui_stream::event::Interrupt;
use ag_ui_stream::id::{IdGenerator, RandomIds};
use ag_ui_stream::message::UserMessage;
use ag_ui_stream::{ByteStreamExt, EventStreamExt, Options, RunAgentInput, Snapshot};
use futures::future::{AbortHandle, Abortable};
use futures::{Stream, TryStreamExt};
use js_sys::Uint8Array;
use serde_json::Value;
use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::{JsFuture, spawn_local};
use wasm_streams::ReadableStream;
use web_sys::{RequestInit, Response, UrlSearchParams};

use crate::view::View;

/// A thread, and the run that is under way.
struct Chat {
    view: View,
    thread: String,
    ids: RandomIds,
    snapshot: Snapshot,
    running: Option<AbortHandle>,
}

/// `?agent=URL&say=TEXT` in the address of the page begins at once.
pub fn main() -> Result<(), Box<dyn Error>> {
    let view = View::new().ok_or("this is not the page's document")?;
    let mut ids = RandomIds::new();
    let thread = ids.next_id();
    let chat = Rc::new(RefCell::new(Chat { view, thread, ids, snapshot: Snapshot::default(), running: None }));

    let query = web_sys::window().and_then(|window| window.location().search().ok()).unwrap_or_default();
    let query = UrlSearchParams::new_with_str(&query).map_err(words)?;
    let said = query.get("say");
    chat.borrow().view.fill(query.get("agent").as_deref(), said.as_deref());
    if said.is_some() {
        toggle(&chat);
    }
    chat.borrow().view.on_submit(Closure::new({
        let chat = Rc::clone(&chat);
        move || toggle(&chat)
    }));
    Ok(())
}

/// Begins a run, or stops the one under way: the request is dropped with its stream.
fn toggle(chat: &Rc<RefCell<Chat>>) {
    if let Some(running) = chat.borrow_mut().running.take() {
        return running.abort();
    }
    let (handle, registration) = AbortHandle::new_pair();
    chat.borrow_mut().running = Some(handle);
    let run = Abortable::new(run(Rc::clone(chat)), registration);
    let chat = Rc::clone(chat);
    spawn_local(async move {
        let problem = match run.await {
            Ok(Ok(())) => None,
            Ok(Err(problem)) => Some(problem),
            Err(_) => Some("stopped".to_owned()),
        };
        let mut chat = chat.borrow_mut();
        chat.running = None;
        chat.view.stopped(problem.as_deref());
    });
}

async fn run(chat: Rc<RefCell<Chat>>) -> Result<(), String> {
    let (agent, input) = {
        let mut chat = chat.borrow_mut();
        let (agent, said) = chat.view.take_form();
        let input = chat.next_input(said)?;
        (agent, input)
    };
    let body = post(&agent, &input).await?;
    let mut updates = body.sse().updates_with(Options::new().input(&input));
    loop {
        let next = updates.try_next().await;
        let mut chat = chat.borrow_mut();
        match next {
            Ok(Some(update)) => {
                chat.snapshot = update.snapshot().clone();
                chat.view.draw(&update);
            }
            // Once more after an error: the run was cut off or rejected by it.
            ended => {
                chat.snapshot = updates.snapshot().clone();
                chat.view.draw_run(updates.snapshot());
                return ended.map(drop).map_err(|error| error.to_string());
            }
        }
    }
}

impl Chat {
    /// What goes to the agent: an answer where it asked, else one more message.
    fn next_input(&mut self, said: String) -> Result<RunAgentInput, String> {
        let mut input = self.snapshot.next_input(self.thread.as_str(), self.ids.next_id());
        let mut answers = self.snapshot.resume();
        // The standard library has no clock here.
        let now = SystemTime::UNIX_EPOCH + Duration::from_millis(js_sys::Date::now() as u64);
        let asked: Vec<_> = answers.open().map(|question: &Interrupt| question.id.clone()).collect();
        for id in &asked {
            answers.resolve(id.clone(), Value::from(said.as_str()), now).map_err(|error| error.to_string())?;
        }
        if asked.is_empty() {
            let message = UserMessage::new(self.ids.next_id(), said).into();
            self.view.draw_message(&message);
            input.messages.push(message);
        } else {
            input.resume = Some(answers.into_entries().map_err(|error| error.to_string())?);
        }
        Ok(input)
    }
}

/// The body of the response, piece by piece. It is no `Send`, and need not be.
async fn post(url: &str, input: &RunAgentInput) -> Result<impl Stream<Item = Result<Vec<u8>, String>> + use<>, String> {
    let request = RequestInit::new();
    request.set_method("POST");
    request.set_body(&serde_json::to_string(input).map_err(|error| error.to_string())?.into());
    let headers = web_sys::Headers::new().map_err(words)?;
    headers.set("content-type", "application/json").map_err(words)?;
    headers.set("accept", "text/event-stream").map_err(words)?;
    request.set_headers(&headers);
    let window = web_sys::window().ok_or("there is no window")?;
    let response = JsFuture::from(window.fetch_with_str_and_init(url, &request)).await.map_err(words)?;
    let response: Response = response.dyn_into().map_err(words)?;
    if !response.ok() {
        return Err(format!("{url} answered {} {}", response.status(), response.status_text()));
    }
    let body = response.body().ok_or("the response has no body")?;
    let pieces = ReadableStream::from_raw(body.unchecked_into()).into_stream();
    Ok(pieces.map_ok(|piece| Uint8Array::from(piece).to_vec()).map_err(words))
}

/// What JavaScript threw.
fn words(thrown: JsValue) -> String {
    thrown.dyn_ref::<js_sys::Error>().map_or_else(|| format!("{thrown:?}"), |error| error.message().into())
}
