//! Producers: they write a run by calls such as `text` and `tool_call`, and give a legal sequence of events.
//!
//! | a run made from | is written with |
//! |---|---|
//! | async code | [`run()`], with a [`RunContext`] to write to |
//! | the same, for each input | [`agent()`], an [`Agent`](crate::Agent) |
//! | what a model streams: text, reasoning, pieces of tool calls | [`from_deltas`], or [`RunContext::relay`] within a run |
//! | events of your own, without async | [`RunWriter`] |
//!
//! All of them write through one [`RunWriter`], which holds every event to the rules of
//! [`Enforcer`](crate::machine::Enforcer) and [`Verifier`](crate::machine::Verifier) before it goes out. An
//! event that would break a rule is refused with the error of that rule, and the run stays as it was.
//!
//! ```
//! # #[cfg(feature = "stream")] {
//! use ag_ui_stream::{EventStreamExt, RunAgentInput, producer};
//! use futures::TryStreamExt;
//! use serde_json::json;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), ag_ui_stream::Error> {
//! let run = producer::run(RunAgentInput::new("thread", "run", []), async move |run| {
//!     run.reasoning("The weather is a question for the tool.").await?;
//!     let call = run.tool_call("weather", &json!({"city": "Ulm"})).await?;
//!     run.tool_result(&call, "mist").await?;
//!     run.state(&json!({"city": "Ulm"})).await?;
//!     let mut answer = run.open_text().await?;
//!     for word in ["There ", "is ", "mist."] {
//!         answer.push(word).await?;
//!     }
//!     Ok(())
//! });
//! let updates: Vec<_> = run.updates().try_collect().await?;
//! let conversation = updates.last().unwrap().snapshot();
//! assert_eq!(conversation.run().unwrap().outcome.as_str(), "success");
//! assert_eq!(conversation.messages().iter().last().unwrap().text().unwrap(), "There is mist.");
//! # Ok(())
//! # }
//! # }
//! ```

mod finish;
mod writer;

#[cfg(feature = "stream")]
mod context;
#[cfg(feature = "stream")]
mod deltas;
#[cfg(feature = "stream")]
mod handles;
#[cfg(feature = "stream")]
mod produced;

#[cfg(feature = "stream")]
pub use context::RunContext;
#[cfg(feature = "stream")]
pub use deltas::{Delta, DeltaInput, from_deltas};
pub use finish::{Failure, Finish};
#[cfg(feature = "stream")]
pub use handles::{OpenReasoning, OpenStep, OpenSubagent, OpenText, OpenToolCall};
#[cfg(feature = "stream")]
pub use produced::{ProducedRun, Producer, agent, run};
pub use writer::RunWriter;
