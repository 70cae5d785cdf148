//! The example `fanout` over a real Redis server: gateways, producers and brokers die in the middle of runs.

#![allow(missing_docs, reason = "a test")]
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test")]
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a child speaks to its parent, and a skip is told")]
#![allow(dead_code, unreachable_pub, reason = "the example uses the rest of its modules")]

#[path = "../examples/fanout/broker.rs"]
mod broker;
#[path = "../examples/fanout/follow.rs"]
mod follow;
#[path = "../examples/fanout/http.rs"]
mod http;
#[path = "../examples/fanout/log.rs"]
mod log;
#[path = "../examples/fanout/publish.rs"]
mod publish;
#[path = "../examples/fanout/read.rs"]
mod read;
#[path = "../examples/fanout/server.rs"]
mod server;

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use ag_ui_stream::agent::{AgentError, agent_fn};
use ag_ui_stream::client::reqwest::{Client, Response, StatusCode};
use ag_ui_stream::message::UserMessage;
use ag_ui_stream::{Event, EventStreamExt, Raw, RunAgentInput, Snapshot};
use futures::future::join_all;

use futures::{Stream, StreamExt, TryStreamExt, stream};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::time::sleep;

use crate::broker::Broker;
use crate::follow::{FollowError, follow};
use crate::log::{AppendError, Entry, Keep, Run, What};
use crate::publish::{PublishError, Publisher};
use crate::read::{ReadError, Runs};
use crate::server::Server;

/// The timeout: longer than any test may take.
const PATIENCE: Duration = Duration::from_secs(60);

/// A server, or `None` after saying why the test is skipped. Where `AG_UI_INTEROP` is `require`, nothing is
/// skipped.
fn redis() -> Option<Server> {
    match Server::start() {
        Ok(server) => Some(server),
        Err(error) => {
            let why = format!("redis-server cannot be started: {error}");
            assert!(std::env::var("AG_UI_INTEROP").as_deref() != Ok("require"), "{why}");
            eprintln!("skipped: {why}");
            None
        }
    }
}

/// Short leases.
fn keep() -> Keep {
    Keep { lease: 1_500, ..Keep::default() }
}

fn broker(redis: &Server) -> Broker {
    Broker::new(&redis.url(), PATIENCE).unwrap()
}

fn runs(redis: &Server) -> Runs {
    Runs::new(broker(redis), keep())
}

async fn publisher(redis: &Server, run: &str) -> Publisher {
    Publisher::claim(broker(redis), "t", run, keep()).await.unwrap()
}

/// A run with this many events, whose texts are numbers.
fn events(run: &str, count: u64) -> Vec<Value> {
    let around = |kind: &str| json!({"type": kind, "threadId": "t", "runId": run});
    let mut events = vec![around("RUN_STARTED"), json!({"type": "TEXT_MESSAGE_START", "messageId": "m"})];
    let deltas = 2..count - 2;
    events.extend(
        deltas.map(|n| json!({"type": "TEXT_MESSAGE_CONTENT", "messageId": "m", "delta": format!("{},", n + 1)})),
    );
    events.extend([json!({"type": "TEXT_MESSAGE_END", "messageId": "m"}), around("RUN_FINISHED")]);
    events
}

/// The text of the run that [`events`] makes, of the events after a position.
fn text(after: u64, count: u64) -> String {
    (after.max(2)..count - 2).map(|n| format!("{},", n + 1)).collect()
}

fn paced(events: Vec<Value>, pace: Duration) -> impl Stream<Item = Value> + Send + 'static {
    stream::iter(events).then(move |event| async move {
        sleep(pace).await;
        event
    })
}

/// Publishes to the end; gives the last position.
async fn publish(
    publisher: Publisher,
    source: impl Stream<Item = Value> + Send + 'static,
) -> Result<u64, PublishError> {
    publisher.publish(source.items()).try_fold(0, |_, at| async move { Ok(at) }).await
}

/// A gateway in a process of its own, whose agent counts up to a number, with an event every 5 ms.
struct Gateway {
    url: String,
    process: Child,
}

impl Gateway {
    fn start(redis: &Server) -> Self {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["a_process_of_a_gateway", "--exact", "--nocapture"]).env("FANOUT_REDIS", redis.url());
        let mut process = command.stdout(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(process.stdout.take().unwrap()).lines();
        let url = lines.map_while(Result::ok).find_map(|line| Some(line[line.find("http://")?..].to_owned())).unwrap();
        Self { url, process }
    }

    fn kill(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Not a test by itself: other tests start it as a process.
#[test]
fn a_process_of_a_gateway() {
    let Ok(redis) = std::env::var("FANOUT_REDIS") else { return };
    let agent = agent_fn(|input: RunAgentInput| async move {
        let count = input.messages.last().and_then(|message| message.text()?.to_string().parse().ok()).unwrap_or(10);
        Ok::<_, AgentError>(paced(events(input.run_id.as_str(), count), Duration::from_millis(5)))
    });
    tokio::runtime::Runtime::new().unwrap().block_on(async move {
        let runs = Runs::new(Broker::new(&redis, PATIENCE).unwrap(), keep());
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        println!("http://{}", listener.local_addr().unwrap());
        axum::serve(listener, http::router(runs, Arc::new(agent))).await.unwrap();
    });
}

async fn begin(gateway: &Gateway, run: &str, count: u64) -> Response {
    let input = RunAgentInput::new("t", run, [UserMessage::new("u", count.to_string()).into()]);
    let body = serde_json::to_string(&input).unwrap();
    Client::new().post(format!("{}/agent", gateway.url)).body(body).send().await.unwrap()
}

async fn get(gateway: &Gateway, path: &str, last_event_id: Option<&str>) -> Response {
    let request = Client::new().get(format!("{}{path}", gateway.url));
    last_event_id.map_or(request.try_clone().unwrap(), |id| request.header("Last-Event-ID", id)).send().await.unwrap()
}

/// Reads a run to its end.
async fn watch(gateways: Vec<String>, run: &str) -> Snapshot {
    let mut updates = follow(gateways, "t", run, 0, PATIENCE).updates();
    while let Some(update) = updates.next().await {
        update.unwrap();
    }
    updates.snapshot().clone()
}

/// The raw events after a position, each as its number says.
async fn numbers(gateways: Vec<String>, run: &str, after: u64) -> Vec<Value> {
    let raw: Vec<_> = follow(gateways, "t", run, after, PATIENCE).try_collect().await.unwrap();
    raw.iter().map(value).collect()
}

fn value(raw: &Raw) -> Value {
    match raw {
        Raw::Text(text) => serde_json::from_str(text).unwrap(),
        Raw::Bytes(bytes) => serde_json::from_slice(bytes).unwrap(),
        other => panic!("{other:?}"),
    }
}

fn is_success(snapshot: &Snapshot, count: u64) {
    assert_eq!(snapshot.run().unwrap().outcome.as_str(), "success");
    assert_eq!(snapshot.message("m").unwrap().text().unwrap(), text(0, count).as_str());
}

/// The log holds each position once.
async fn is_whole(redis: &Server, run: &str, count: u64) {
    let entries = log::range(&broker(redis), &Run::new("t", run), 0, 100_000).await.unwrap();
    assert_eq!(entries.iter().map(|entry| entry.position).collect::<Vec<_>>(), (1..=count).collect::<Vec<_>>());
    assert!(matches!(entries.last().unwrap().what, What::Last(_)));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_gateway_dies_and_its_viewers_lose_no_event() {
    const COUNT: u64 = 600;
    let Some(redis) = redis() else { return };
    let [mut first, second] = [Gateway::start(&redis), Gateway::start(&redis)];
    let publisher = publisher(&redis, "r").await;
    let produced = tokio::spawn(publish(publisher, paced(events("r", COUNT), Duration::from_millis(3))));
    let both = |swap: bool| {
        let mut urls = vec![first.url.clone(), second.url.clone()];
        if swap {
            urls.reverse();
        }
        urls
    };
    let early = [tokio::spawn(watch_owned(both(false))), tokio::spawn(watch_owned(both(true)))];
    sleep(Duration::from_millis(400)).await;
    let late = [tokio::spawn(watch_owned(both(false))), tokio::spawn(watch_owned(both(true)))];
    let rest = [false, true].map(|swap| tokio::spawn(numbers_owned(both(swap), 50)));
    sleep(Duration::from_millis(400)).await;
    first.kill();

    assert_eq!(produced.await.unwrap().unwrap(), COUNT);
    for snapshot in join_all(early.into_iter().chain(late)).await {
        is_success(&snapshot.unwrap(), COUNT);
    }
    for rest in join_all(rest).await {
        assert_eq!(rest.unwrap(), events("r", COUNT).split_off(50));
    }
    // A viewer that joins after the end gets the whole run, or the part that it misses.
    is_success(&watch(vec![second.url.clone()], "r").await, COUNT);
    assert_eq!(numbers(vec![second.url.clone()], "r", COUNT - 1).await, events("r", COUNT).split_off(599));
    is_whole(&redis, "r", COUNT).await;
}

async fn watch_owned(gateways: Vec<String>) -> Snapshot {
    watch(gateways, "r").await
}

async fn numbers_owned(gateways: Vec<String>, after: u64) -> Vec<Value> {
    numbers(gateways, "r", after).await
}

#[tokio::test(flavor = "multi_thread")]
async fn the_broker_restarts_and_no_event_is_lost_or_doubled() {
    const COUNT: u64 = 600;
    let Some(mut redis) = redis() else { return };
    let gateways = [Gateway::start(&redis), Gateway::start(&redis)];
    let publisher = publisher(&redis, "r").await;
    let produced = tokio::spawn(publish(publisher, paced(events("r", COUNT), Duration::from_millis(3))));
    let viewers: Vec<_> = gateways.iter().map(|gateway| tokio::spawn(watch_owned(vec![gateway.url.clone()]))).collect();
    let direct = tokio::spawn({
        let runs = runs(&redis);
        async move { runs.read("t", "r", 0).await.unwrap().events().try_collect::<Vec<_>>().await.unwrap() }
    });
    for pause in [100, 2_500] {
        sleep(Duration::from_millis(500)).await;
        redis.kill();
        // The second time it is longer than the lease: the producer is alive nevertheless.
        sleep(Duration::from_millis(pause)).await;
        redis.start_again().unwrap();
    }

    assert_eq!(produced.await.unwrap().unwrap(), COUNT);
    for snapshot in join_all(viewers).await {
        is_success(&snapshot.unwrap(), COUNT);
    }
    let direct: Vec<Value> = direct.await.unwrap().iter().map(|json| serde_json::from_slice(json).unwrap()).collect();
    assert_eq!(direct, events("r", COUNT));
    is_whole(&redis, "r", COUNT).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn r8_a_producer_that_dies_leaves_a_truncated_run() {
    let Some(redis) = redis() else { return };
    let [mut first, second] = [Gateway::start(&redis), Gateway::start(&redis)];
    assert_eq!(begin(&first, "r", 5_000).await.status(), StatusCode::OK);
    let there = tokio::spawn(watch_owned(vec![second.url.clone()]));
    let mut seen = follow(vec![second.url.clone()], "t", "r", 0, PATIENCE);
    for _ in 0..20 {
        seen.next().await.unwrap().unwrap();
    }
    first.kill();

    // For a viewer from the start, for a late one, and for one that reads without a gateway.
    for snapshot in [there.await.unwrap(), watch(vec![second.url.clone()], "r").await] {
        let run = snapshot.run().unwrap();
        assert_eq!(run.outcome.as_str(), "error");
        assert!(format!("{:?}", run.outcome).contains("TRUNCATED"), "{:?}", run.outcome);
        assert!(snapshot.message("m").unwrap().text().unwrap().len() > 10);
    }
    let mut updates = runs(&redis).read("t", "r", 0).await.unwrap().events().updates();
    let error = updates.by_ref().try_for_each(|_| async { Ok(()) }).await.unwrap_err();
    assert!(error.is_truncated(), "{error}");
    assert_ne!(updates.snapshot().run().unwrap().outcome.as_str(), "success");
    // The name of the run stays taken.
    assert_eq!(begin(&second, "r", 10).await.status(), StatusCode::CONFLICT);
}

#[tokio::test(flavor = "multi_thread")]
async fn r8_a_run_without_viewers_is_found_truncated_later() {
    let Some(redis) = redis() else { return };
    let mut written = publisher(&redis, "r")
        .await
        .publish(stream::iter(events("r", 50)).chain(stream::pending()).take(9).chain(stream::pending()).items());
    while written.next().await.unwrap().unwrap() < 9 {}
    drop(written);
    let entries: Vec<_> = runs(&redis).read("t", "r", 0).await.unwrap().entries().try_collect().await.unwrap();
    assert_eq!(entries.len(), 10);
    assert!(matches!(&entries[9].what, What::Cut(why) if why.contains("died")));
    // So is a run that was claimed but has no event.
    drop(publisher(&redis, "empty").await);
    let entries: Vec<_> = runs(&redis).read("t", "empty", 0).await.unwrap().entries().try_collect().await.unwrap();
    assert!(matches!(&entries[..], [Entry { position: 1, what: What::Cut(_) }]));
}

/// The producer hung and comes back: all viewers have seen the same end, and the producer gets an error.
#[tokio::test(flavor = "multi_thread")]
async fn a_producer_that_was_cut_off_can_write_no_more() {
    let Some(redis) = redis() else { return };
    let mut written = publisher(&redis, "r").await.publish(paced(events("r", 50), Duration::from_millis(1)).items());
    while written.next().await.unwrap().unwrap() < 9 {}
    let read =
        || async { runs(&redis).read("t", "r", 0).await.unwrap().entries().try_collect::<Vec<_>>().await.unwrap() };
    let seen = read().await;
    assert!(matches!(seen.last().unwrap(), Entry { position, what: What::Cut(_) } if *position >= 10));
    let at = seen.len() as u64;
    let error = loop {
        if let Err(error) = written.next().await.unwrap() {
            break error;
        }
    };
    assert!(matches!(error, PublishError::Fenced(position) if position == at), "{error:?}");
    assert!(written.next().await.is_none());
    assert_eq!(read().await, seen);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fault_of_the_agent_cuts_the_run_off() {
    let Some(redis) = redis() else { return };
    let mut wrong = events("r", 20);
    wrong.insert(5, json!({"type": "TEXT_MESSAGE_END", "messageId": "other"}));
    for (run, events, said) in
        [("wrong", wrong, "S2"), ("short", events("r", 20)[..9].to_vec(), "R8"), ("nothing", Vec::new(), "R8")]
    {
        let error = publish(publisher(&redis, run).await, stream::iter(events)).await.unwrap_err();
        assert!(matches!(&error, PublishError::Cut(why) if why.contains(said)), "{error:?}");
        let entries: Vec<_> = runs(&redis).read("t", run, 0).await.unwrap().entries().try_collect().await.unwrap();
        assert!(matches!(&entries.last().unwrap().what, What::Cut(why) if why.contains(said)), "{run}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn trimmed_history_is_an_error() {
    const COUNT: u64 = 3_000;
    let Some(redis) = redis() else { return };
    let gateway = Gateway::start(&redis);
    // A viewer that was reading, and became slower than the trimming.
    let publisher = publisher(&redis, "r").await;
    let mut slow = runs(&redis).read("t", "r", 0).await.unwrap().entries();
    let produced = tokio::spawn(publish(publisher, stream::iter(events("r", COUNT))));
    for position in 1..=10 {
        assert_eq!(slow.next().await.unwrap().unwrap().position, position);
    }
    assert_eq!(produced.await.unwrap().unwrap(), COUNT);
    let mut trim = broker::commands();
    trim.cmd("XTRIM").arg(Run::new("t", "r").events).arg("MAXLEN").arg(100);
    broker(&redis).ask(&trim).await.unwrap();
    let first = COUNT - 99;
    let rest: Vec<_> = slow.collect().await;
    let (error, read) = rest.split_last().unwrap();
    let next = 11 + read.len() as u64;
    assert!(
        matches!(error, Err(ReadError::Gone { asked, first: found }) if (*asked, *found) == (next, first)),
        "{error:?}"
    );

    // A viewer that joins late.
    for after in [0, 10, first - 2] {
        let error = runs(&redis).read("t", "r", after).await.unwrap_err();
        assert!(
            matches!(error, ReadError::Gone { asked, first: found } if (asked, found) == (after + 1, first)),
            "{error:?}"
        );
        let answer = get(&gateway, &format!("/threads/t/runs/r?after={after}"), None).await;
        assert_eq!(answer.status(), StatusCode::GONE);
        let told: Value = serde_json::from_str(&answer.text().await.unwrap()).unwrap();
        assert_eq!((told["asked"].as_u64(), told["first"].as_u64()), (Some(after + 1), Some(first)));
        let gateways = vec![gateway.url.clone()];
        let error = follow(gateways, "t", "r", after, PATIENCE).next().await.unwrap().unwrap_err();
        assert!(matches!(error, FollowError::Refused { status: StatusCode::GONE, .. }));
    }
    assert_eq!(numbers(vec![gateway.url.clone()], "r", first - 1).await, events("r", COUNT).split_off(2_900));
    // The whole run is gone, with its end: that is an error too.
    let mut trim = broker::commands();
    trim.cmd("XTRIM").arg(Run::new("t", "r").events).arg("MAXLEN").arg(0);
    broker(&redis).ask(&trim).await.unwrap();
    assert!(matches!(runs(&redis).read("t", "r", 0).await.unwrap_err(), ReadError::Gone { asked: 1, .. }));
}

/// The broker keeps about as many events as it is told to: it removes them in groups.
#[tokio::test(flavor = "multi_thread")]
async fn a_run_can_be_kept_in_part() {
    let Some(redis) = redis() else { return };
    let keep = Keep { events: Some(200), ..keep() };
    let publisher = Publisher::claim(broker(&redis), "t", "r", keep).await.unwrap();
    publish(publisher, stream::iter(events("r", 2_000))).await.unwrap();
    let left = log::range(&broker(&redis), &Run::new("t", "r"), 0, 10_000).await.unwrap();
    assert!((200..1_000).contains(&left.len()), "{}", left.len());
    assert_eq!(left.last().unwrap().position, 2_000);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_event_that_is_sent_twice_is_stored_once() {
    let Some(redis) = redis() else { return };
    let (broker, run) = (broker(&redis), Run::new("t", "r"));
    let entry = |position, json: &str| Entry { position, what: What::Event(json.to_owned().into()) };
    let [one, two, three] = [entry(1, "1"), entry(2, "2"), entry(3, "3")];
    for entries in [vec![one.clone(), two.clone()], vec![one.clone(), two.clone()], vec![two.clone(), three.clone()]] {
        log::append(&broker, &run, &keep(), &entries).await.unwrap();
    }
    let all = [one, two, three];
    assert_eq!(log::range(&broker, &run, 0, 10).await.unwrap(), all);
    let other = log::append(&broker, &run, &keep(), &[entry(2, "other")]).await;
    assert!(matches!(other, Err(AppendError::Occupied(2))));
    assert_eq!(log::range(&broker, &run, 0, 10).await.unwrap(), all);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_gateway_answers_with_the_right_status() {
    let Some(redis) = redis() else { return };
    let gateway = Gateway::start(&redis);
    let publisher = publisher(&redis, "a/b ?").await;
    let path = "/threads/t/runs/a%2Fb%20%3F";
    publish(publisher, stream::iter(events("a/b ?", 10))).await.unwrap();
    for (path, id, status) in [
        ("/threads/t/runs/none", None, StatusCode::NOT_FOUND),
        (path, None, StatusCode::OK),
        (path, Some("3"), StatusCode::OK),
        (path, Some("10"), StatusCode::NO_CONTENT),
        (path, Some("11"), StatusCode::NO_CONTENT),
        (path, Some("x"), StatusCode::BAD_REQUEST),
        (path, Some("18446744073709551615"), StatusCode::BAD_REQUEST),
    ] {
        assert_eq!(get(&gateway, path, id).await.status(), status, "{path} {id:?}");
    }
    // The bytes that a browser gets.
    let body = get(&gateway, path, Some("8")).await.text().await.unwrap();
    assert!(body.starts_with("id: 9\ndata: {\"type\":\"TEXT_MESSAGE_END\""), "{body}");
    assert!(body.contains("\n\nid: 10\ndata: {\"type\":\"RUN_FINISHED\""), "{body}");
    // A browser sends the newest position in the header, and the first one in the address: the header counts.
    let answer = get(&gateway, &format!("{path}?after=0"), Some("10")).await;
    assert_eq!(answer.status(), StatusCode::NO_CONTENT);
    assert_eq!(numbers(vec![gateway.url.clone()], "a/b ?", 0).await, events("a/b ?", 10));
}

#[test]
fn runs_of_different_names_have_different_keys() {
    let names = [("a", "b:c"), ("a:b", "c"), ("1:a", "b"), ("", "a:b"), ("a:b", ""), ("a", "b")];
    for (at, (thread, run)) in names.iter().enumerate() {
        for (other_thread, other_run) in &names[..at] {
            assert_ne!(Run::new(thread, run), Run::new(other_thread, other_run));
        }
    }
}

#[test]
fn the_helpers_agree_about_numbers() {
    let deltas: String = events("r", 20).iter().filter_map(|event| Some(event["delta"].as_str()?.to_owned())).collect();
    assert_eq!(deltas, text(0, 20));
    let typed: Vec<Event> = events("r", 20).into_iter().map(|event| serde_json::from_value(event).unwrap()).collect();
    assert_eq!(typed.len(), 20);
}
