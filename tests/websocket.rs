//! The WebSocket client against scripted servers, over real sockets, some of them byte by byte.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test")]

use std::sync::Arc;
use std::time::Duration;

use ag_ui_stream::agent::BoxError;
use ag_ui_stream::client::tokio_tungstenite::{
    WebSocketStream, accept_async, accept_hdr_async, client_async, connect_async,
};
use ag_ui_stream::client::tungstenite::handshake::server::{ErrorResponse, Request, Response};
use ag_ui_stream::client::tungstenite::http::HeaderMap;
use ag_ui_stream::client::tungstenite::protocol::CloseFrame;
use ag_ui_stream::client::tungstenite::{self, Message};
use ag_ui_stream::client::{
    AbortHandle, ClientError, WebSocketAgent, WebSocketAgentBuilder, WebSocketConnection, WebSocketEvents,
    WebSocketExt, WebSocketOptions,
};
use ag_ui_stream::error::{Limit, LimitExceeded, LimitStage, TruncatedBy};
use ag_ui_stream::message::{ActivityMessage, UserMessage};
use ag_ui_stream::{Agent, AgentExt, EncodeStreamExt, Error, EventStreamExt, Limits, Options, Rule, RunAgentInput};
use futures::stream::{self, FusedStream};
use futures::{Sink, SinkExt, Stream, StreamExt, TryStreamExt};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::oneshot;
use tokio::time::{sleep, timeout};

mod support {
    #![allow(unreachable_pub, reason = "each test has its own copy")]
    pub mod older;
    pub mod stream;
}

use support::older;
use support::stream::{Step, greedy, next_after, script};

const STARTED: &str = r#"{"type":"RUN_STARTED","threadId":"t","runId":"r"}"#;
const TEXT: &str = r#"{"type":"TEXT_MESSAGE_CHUNK","messageId":"m","delta":"Zwölf Äpfel 🍎"}"#;
const FINISHED: &str = r#"{"type":"RUN_FINISHED","threadId":"t","runId":"r"}"#;
const WHOLE: [&str; 3] = [STARTED, TEXT, FINISHED];

type Socket = WebSocketStream<TcpStream>;

/// A server that runs this function on one connection. Returns its address.
async fn listens<F, Fut>(serve: F) -> String
where
    F: FnOnce(TcpStream) -> Fut + Send + 'static,
    Fut: Future<Output = ()> + Send,
{
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("ws://{}/agent", listener.local_addr().unwrap());
    tokio::spawn(async move {
        let (socket, _) = listener.accept().await.unwrap();
        socket.set_nodelay(true).unwrap();
        serve(socket).await;
    });
    url
}

/// A server that opens the socket, reads the input, and then runs this function.
async fn server<F, Fut>(serve: F) -> String
where
    F: FnOnce(Socket, Value) -> Fut + Send + 'static,
    Fut: Future<Output = ()> + Send,
{
    listens(async move |socket| {
        let mut socket = accept_async(socket).await.unwrap();
        let input = socket.next().await.unwrap().unwrap();
        assert!(input.is_text(), "{input}");
        serve(socket, serde_json::from_str(input.to_text().unwrap()).unwrap()).await;
    })
    .await
}

/// A server that sends these, and closes normally.
async fn says<M: Into<Message> + Send + 'static>(
    messages: impl IntoIterator<Item = M, IntoIter: Send> + Send + 'static,
) -> String {
    server(async move |mut socket, _| {
        for message in messages {
            socket.send(message.into()).await.unwrap();
        }
        close(socket, None).await;
    })
    .await
}

/// A server that writes these bytes into its socket, and drops it.
async fn writes(bytes: impl Into<Vec<u8>>) -> String {
    let bytes = bytes.into();
    server(async move |mut socket, _| {
        socket.get_mut().write_all(&bytes).await.unwrap();
    })
    .await
}

/// Closes, and waits for the answer.
async fn close(mut socket: Socket, frame: Option<CloseFrame>) {
    socket.close(frame).await.unwrap();
    while socket.next().await.is_some() {}
}

/// The next report of a server, with a time limit.
async fn soon<T>(told: oneshot::Receiver<T>) -> T {
    timeout(Duration::from_secs(10), told).await.unwrap().unwrap()
}

fn closing(code: u16, reason: &'static str) -> Option<CloseFrame> {
    Some(CloseFrame { code: code.into(), reason: reason.into() })
}

/// A frame as a server sends it.
fn frame(is_last: bool, opcode: u8, payload: &[u8]) -> Vec<u8> {
    let mut frame = vec![u8::from(is_last) << 7 | opcode];
    match u8::try_from(payload.len()) {
        Ok(len) if len < 126 => frame.push(len),
        _ => {
            frame.push(127);
            frame.extend((payload.len() as u64).to_be_bytes());
        }
    }
    frame.extend(payload);
    frame
}

fn input() -> RunAgentInput {
    RunAgentInput::new("t", "r", [UserMessage::new("u", "Hello").into()])
}

fn agent(url: &str, options: WebSocketOptions) -> WebSocketAgent {
    WebSocketAgent::builder(url).options(options).build().unwrap()
}

/// The result of a run: the text of the message `m`, the outcome, and the error that ended it.
struct Outcome {
    text: Option<String>,
    outcome: Option<String>,
    error: Option<Error<ClientError>>,
}

async fn outcome<S>(events: WebSocketEvents<S>) -> Outcome
where
    S: Stream<Item = Result<Message, tungstenite::Error>> + Unpin,
{
    let mut updates = events.updates();
    let error = loop {
        match timeout(Duration::from_secs(20), updates.next()).await.unwrap() {
            Some(Ok(_)) => {}
            Some(Err(error)) => break Some(error),
            None => break None,
        }
    };
    assert!(updates.next().await.is_none());
    let snapshot = updates.machine().snapshot();
    Outcome {
        text: snapshot.message("m").and_then(|message| Some(message.text()?.to_string())),
        outcome: snapshot.run().map(|run| run.outcome.as_str().to_owned()),
        error,
    }
}

async fn run_with(url: &str, options: WebSocketOptions) -> Outcome {
    outcome(agent(url, options).start(input()).await.unwrap()).await
}

async fn run(url: &str) -> Outcome {
    run_with(url, WebSocketOptions::new()).await
}

async fn refused(url: &str) -> ClientError {
    let error = WebSocketAgent::new(url).unwrap().start(input()).await.unwrap_err();
    assert_eq!((error.truncated_by(), error.rule()), (None, None));
    error
}

fn assert_whole(outcome: &Outcome) {
    assert!(outcome.error.is_none(), "{:?}", outcome.error);
    assert_eq!(outcome.text.as_deref(), Some("Zwölf Äpfel 🍎"));
    assert_eq!(outcome.outcome.as_deref(), Some("success"));
}

/// The events before the error stay.
fn cut_off(outcome: Outcome) -> Error<ClientError> {
    assert_eq!(outcome.text.as_deref(), Some("Zwölf Äpfel 🍎"));
    assert_eq!(outcome.outcome.as_deref(), Some("truncated"));
    let error = outcome.error.unwrap();
    if !matches!(error, Error::Source(ClientError::Binary)) {
        assert!(error.is_truncated() && error.is_transport() && error.rule() == Some(Rule::R8), "{error}");
    }
    error
}

fn source(error: Error<ClientError>) -> ClientError {
    match error {
        Error::Source(error) => error,
        other => panic!("{other:?}"),
    }
}

#[test]
fn what_is_shared_between_threads() {
    fn sent<T: Send + Unpin + 'static>() {}
    fn shared<T: Send + Sync + Unpin + Clone + 'static>() {}
    sent::<WebSocketEvents>();
    sent::<WebSocketEvents<stream::SplitStream<Socket>>>();
    sent::<WebSocketConnection>();
    sent::<ClientError>();
    sent::<WebSocketAgentBuilder>();
    shared::<WebSocketAgent>();
    shared::<AbortHandle>();
    shared::<WebSocketOptions>();
}

#[tokio::test]
async fn a_run_over_text() {
    assert_whole(&run(&says(WHOLE).await).await);
}

#[tokio::test]
async fn t4_what_is_sent() {
    let (tell, told) = oneshot::channel();
    let url = server(async move |socket, input| {
        tell.send(input).unwrap();
        close(socket, None).await;
    })
    .await;
    let mut input = input();
    input.messages.push(ActivityMessage::new("a", "PLAN", serde_json::Map::new()).into());
    let events = WebSocketAgent::new(url).unwrap().start(input).await.unwrap();
    assert!(matches!(outcome(events).await.error, Some(Error::Truncated(_))));
    let sent = soon(told).await;
    assert_eq!(sent["protocolVersion"], "1.0");
    assert_eq!(sent["messages"], json!([{"id": "u", "role": "user", "content": "Hello"}]));
    assert_eq!((&sent["state"], &sent["tools"]), (&json!({}), &json!([])));

    let mut bad = RunAgentInput::new("t", "r", []);
    bad.resume = Some(vec![]);
    bad.state = Some(Value::Null);
    let error = WebSocketAgent::new("ws://127.0.0.1:1").unwrap().start(bad).await.unwrap_err();
    assert!(matches!(error, ClientError::Input(_)), "{error:?}");
}

#[tokio::test]
async fn headers_a_token_and_a_hook() {
    let (tell, told) = oneshot::channel();
    let url = listens(async move |socket| {
        let mut tell = Some(tell);
        #[allow(clippy::result_large_err, reason = "the library's")]
        let look = |request: &Request, response: Response| {
            let header = |name: &str| {
                let values = request.headers().get_all(name).iter();
                values.map(|value| value.to_str().unwrap()).collect::<Vec<_>>().join(" and ")
            };
            let seen = ["authorization", "x-mine", "x-hook", "cookie"].map(header);
            tell.take().unwrap().send((request.uri().to_string(), seen)).unwrap();
            Ok::<_, ErrorResponse>(response)
        };
        let mut socket = accept_hdr_async(socket, look).await.unwrap();
        socket.next().await.unwrap().unwrap();
        close(socket, None).await;
    })
    .await;
    let mut cookies = HeaderMap::new();
    for cookie in ["a=1", "b=2"] {
        cookies.append("cookie", cookie.parse().unwrap());
    }
    let agent = WebSocketAgent::builder(format!("{url}?key=1"))
        .bearer("secret")
        .header("x-mine", "no")
        .header("X-Mine", "yes")
        .header("cookie", "old=0")
        .headers(cookies)
        .prepare(async |mut request| {
            assert!(request.headers()["authorization"].is_sensitive(), "no log is to show it");
            request.headers_mut().insert("x-hook", "run".parse()?);
            Ok(request)
        })
        .build()
        .unwrap();
    let shown = format!("{agent:?}");
    assert!(shown.contains("x-mine") && !shown.contains("secret") && !shown.contains("key=1"), "{shown}");
    outcome(agent.start(input()).await.unwrap()).await;
    let (uri, seen) = soon(told).await;
    assert_eq!(uri, "/agent?key=1");
    assert_eq!(seen, ["Bearer secret", "yes", "run", "a=1 and b=2"]);
}

#[cfg(feature = "protobuf")]
mod protobuf {
    use ag_ui_stream::codec::Format;
    use ag_ui_stream::{Event, RawItem};

    use super::*;

    fn frames() -> Vec<Vec<u8>> {
        let frame = |text: &&str| {
            let (event, _) = Event::from_value(&serde_json::from_str(text).unwrap()).unwrap();
            Format::Protobuf.encode(&event.unwrap()).unwrap()
        };
        WHOLE.iter().map(frame).collect()
    }

    #[tokio::test]
    async fn t2_a_frame_a_message() {
        assert_whole(&run(&says(frames()).await).await);
    }

    #[tokio::test]
    async fn t2_frames_in_one_message() {
        assert_whole(&run(&says([frames().concat()]).await).await);
    }

    #[tokio::test]
    async fn t2_events_without_their_length() {
        assert_whole(&run(&says(frames().into_iter().map(|frame| frame[4..].to_vec())).await).await);
    }

    #[tokio::test]
    async fn p4_text_and_binary_mixed() {
        let frames = frames();
        let messages =
            [Message::text(STARTED), Message::binary(frames[1].clone()), Message::binary(frames[2][4..].to_vec())];
        let url = says(messages).await;
        let items: Vec<_> = agent(&url, WebSocketOptions::new())
            .start(RunAgentInput::new("t", "r", []))
            .await
            .unwrap()
            .try_collect()
            .await
            .unwrap();
        let indexes = items.iter().map(|item| match item {
            RawItem::Event { index, .. } => *index,
            other => panic!("{other:?}"),
        });
        assert_eq!(indexes.collect::<Vec<_>>(), [0, 1, 2]);
        let updates: Vec<_> = stream::iter(items).updates().try_collect().await.unwrap();
        assert_eq!(updates.last().unwrap().snapshot().run().unwrap().outcome.as_str(), "success");
    }

    #[tokio::test]
    async fn t2_unreadable_bytes_are_malformed() {
        let mut frames = frames();
        let cut = frames[2].len() - 1;
        frames[2].truncate(cut);
        for last in [frames[2].clone(), b"\xff".to_vec(), vec![]] {
            let messages = [frames[0].clone(), frames[1].clone(), last];
            match cut_off_or_rejected(run(&says(messages).await).await) {
                Error::Malformed(error) => assert_eq!((error.rule, error.event), (Rule::T2, 2)),
                other => panic!("{other:?}"),
            }
        }
    }

    fn cut_off_or_rejected(outcome: Outcome) -> Error<ClientError> {
        assert_eq!(outcome.outcome.as_deref(), Some("rejected"));
        outcome.error.unwrap()
    }
}

#[cfg(not(feature = "protobuf"))]
#[tokio::test]
async fn binary_without_the_feature() {
    let messages = [Message::text(STARTED), Message::text(TEXT), Message::binary(vec![0, 0, 0, 0])];
    let error = source(cut_off(run(&says(messages).await).await));
    assert!(matches!(error, ClientError::Binary), "{error:?}");
}

#[tokio::test]
async fn pings_are_answered_and_are_no_events() {
    let url = server(async |mut socket, _| {
        for text in WHOLE {
            socket.send(Message::Ping(b"there?".to_vec().into())).await.unwrap();
            let pong = socket.next().await.unwrap().unwrap();
            assert_eq!(pong, Message::Pong(b"there?".to_vec().into()));
            socket.send(Message::Pong(Vec::new().into())).await.unwrap();
            socket.send(Message::text(text)).await.unwrap();
        }
        close(socket, None).await;
    })
    .await;
    assert_whole(&run(&url).await);
}

#[tokio::test]
async fn fragments_are_one_message() {
    let (head, tail) = TEXT.split_at(TEXT.find('🍎').unwrap());
    let tail = tail.as_bytes();
    let bytes = [
        frame(true, 1, STARTED.as_bytes()),
        frame(false, 1, head.as_bytes()),
        // A ping may come in between, and a character may be cut.
        frame(true, 9, b"?"),
        frame(false, 0, &tail[..1]),
        frame(false, 0, b""),
        frame(true, 0, &tail[1..]),
        frame(true, 1, FINISHED.as_bytes()),
        frame(true, 8, b""),
    ]
    .concat();
    for size in [1, 7, bytes.len()] {
        let bytes = bytes.clone();
        let url = server(async move |mut socket, _| {
            for piece in bytes.chunks(size) {
                socket.get_mut().write_all(piece).await.unwrap();
                tokio::task::yield_now().await;
            }
            while socket.next().await.is_some_and(|message| message.is_ok()) {}
        })
        .await;
        assert_whole(&run(&url).await);
    }
}

#[tokio::test]
async fn r8_closed_normally() {
    for code in [None, Some(1000), Some(1001)] {
        for is_whole in [true, false] {
            let url = server(async move |mut socket, _| {
                for text in &WHOLE[..if is_whole { 3 } else { 2 }] {
                    socket.send(Message::text(*text)).await.unwrap();
                }
                close(socket, code.and_then(|code| closing(code, "bye"))).await;
            })
            .await;
            let outcome = run(&url).await;
            if is_whole {
                assert_whole(&outcome);
            } else {
                let error = cut_off(outcome);
                assert!(matches!(&error, Error::Truncated(error) if error.by == TruncatedBy::Close), "{error:?}");
            }
        }
    }
}

#[tokio::test]
async fn r8_closed_with_a_reason() {
    for code in [1008, 1011, 1012, 4000] {
        for is_whole in [true, false] {
            let url = server(async move |mut socket, _| {
                for text in &WHOLE[..if is_whole { 3 } else { 2 }] {
                    socket.send(Message::text(*text)).await.unwrap();
                }
                close(socket, closing(code, "too much")).await;
            })
            .await;
            let outcome = run(&url).await;
            let said = format!("the server closed the socket with {code}: \"too much\"");
            if is_whole {
                // R8a: it does not take the end back.
                assert_eq!(outcome.outcome.as_deref(), Some("success"));
                let error = source(outcome.error.unwrap());
                assert_eq!((error.close_code(), error.truncated_by(), error.rule()), (Some(code), None, None));
                assert_eq!(error.to_string(), format!("after the end of the run: {said}"));
            } else {
                let error = source(cut_off(outcome));
                assert_eq!((error.close_code(), error.truncated_by()), (Some(code), Some(TruncatedBy::Close)));
                assert_eq!(error.rule(), Some(Rule::R8));
                assert_eq!(error.to_string(), format!("R8: truncated: {said}"));
            }
        }
    }
}

#[tokio::test]
async fn the_server_gets_an_answer_to_its_close() {
    for is_owned in [true, false] {
        let (tell, told) = oneshot::channel();
        let url = server(async move |mut socket, _| {
            socket.send(Message::text(STARTED)).await.unwrap();
            socket.close(closing(4001, "now")).await.unwrap();
            tell.send(socket.next().await.unwrap().unwrap()).unwrap();
        })
        .await;
        if is_owned {
            assert!(run(&url).await.error.is_some());
            assert_eq!(soon(told).await, Message::Close(closing(4001, "now")));
        } else {
            let (mut socket, _) = connect_async(&url).await.unwrap();
            socket.send(Message::text("{}")).await.unwrap();
            assert!(outcome((&mut socket).agent_events()).await.error.is_some());
            // Though the socket is still there.
            assert_eq!(soon(told).await, Message::Close(closing(4001, "now")));
            drop(socket);
        }
    }
}

#[tokio::test]
async fn r8_a_socket_that_fails() {
    let begun = [frame(true, 1, STARTED.as_bytes()), frame(true, 1, TEXT.as_bytes())].concat();
    let finished = frame(true, 1, FINISHED.as_bytes());
    for end in [
        &b""[..],
        // Within a frame, between two fragments, and an invalid frame for a server.
        &finished[..20],
        &frame(false, 1, b"{")[..],
        b"HTTP/1.1 500 Oh no\r\n\r\n",
    ] {
        let error = source(cut_off(run(&writes([&begun[..], end].concat()).await).await));
        assert!(matches!(error, ClientError::Body(_)), "{error:?}");
        assert_eq!(error.truncated_by(), Some(TruncatedBy::Body));
        assert!(std::error::Error::source(&error).is_some());
    }
    let outcome = run(&writes([&begun[..], &finished].concat()).await).await;
    let error = outcome.error.unwrap();
    assert!(!error.is_truncated() && error.is_transport());
    assert!(matches!(source(error), ClientError::AfterRun(error) if matches!(*error, ClientError::Body(_))));
    assert_eq!(outcome.outcome.as_deref(), Some("success"), "R8a");
}

#[tokio::test]
async fn invalid_utf_8_is_malformed() {
    for bad in [
        frame(true, 1, b"{\"type\":\"STEP_STARTED\",\"stepName\":\"\xff\"}"),
        [frame(false, 1, b"{\"type\":\"\xf0\x9f"), frame(true, 0, b"\"}")].concat(),
    ] {
        let bytes = [frame(true, 1, STARTED.as_bytes()), bad].concat();
        match run(&writes(bytes).await).await.error {
            Some(Error::Malformed(error)) => {
                assert_eq!((error.rule, error.event, &*error.expected), (Rule::E9, 1, "UTF-8"));
            }
            other => panic!("{other:?}"),
        }
    }
}

#[tokio::test]
async fn e9_text_that_is_not_an_event() {
    for text in ["[DONE]", "", "null", "data: {}"] {
        let outcome = run(&says([STARTED, text]).await).await;
        assert_eq!(outcome.error.unwrap().rule(), Some(Rule::E9));
    }
}

#[tokio::test]
async fn a_message_that_is_too_long_meets_the_limit() {
    let limits = Limits { max_event_bytes: 1000, ..Limits::default() };
    let long = format!(r#"{{"type":"CUSTOM","name":"long","value":"{}"}}"#, "x".repeat(1000));
    let exceeded = LimitExceeded::new(1, Limit::EventBytes, 1000).of(LimitStage::Decoder);
    let mut announced = frame(true, 1, STARTED.as_bytes());
    // Nothing of it has to come.
    announced.extend([0x81, 127, 0, 0, 0, 1, 0, 0, 0, 0]);
    let parts = [
        frame(true, 1, STARTED.as_bytes()),
        frame(false, 1, &long.as_bytes()[..600]),
        frame(true, 0, &long.as_bytes()[600..]),
    ];
    for url in [says([STARTED.to_owned(), long.clone()]).await, writes(announced).await, writes(parts.concat()).await] {
        let outcome = run_with(&url, WebSocketOptions::new().read_with(Options::new().limits(limits))).await;
        match outcome.error {
            Some(Error::LimitExceeded(error)) => assert_eq!(*error, exceeded),
            other => panic!("{other:?}"),
        }
    }

    // A socket that was opened with other bounds.
    let url = server(async move |mut socket, _| {
        socket.send(Message::text(STARTED)).await.unwrap();
        socket.send(Message::text(long)).await.unwrap();
    })
    .await;
    let (mut socket, _) = connect_async(&url).await.unwrap();
    socket.send(Message::text("{}")).await.unwrap();
    let outcome =
        outcome(socket.agent_events_with(WebSocketOptions::new().read_with(Options::new().limits(limits)))).await;
    assert!(matches!(outcome.error, Some(Error::LimitExceeded(error)) if *error == exceeded));
}

#[tokio::test]
async fn an_event_as_long_as_the_limit_is_good() {
    let text = format!(r#"{{"type":"RUN_ERROR","message":"{}"}}"#, "x".repeat(1000));
    let limits = Limits { max_event_bytes: text.len(), ..Limits::default() };
    let outcome = run_with(&says([text]).await, WebSocketOptions::new().read_with(Options::new().limits(limits))).await;
    assert!(outcome.error.is_none(), "{:?}", outcome.error);
}

#[tokio::test]
async fn no_message_comes() {
    let short = Duration::from_millis(100);
    let (done, wait) = oneshot::channel::<()>();
    let url = server(async |mut socket, _| {
        socket.send(Message::text(STARTED)).await.unwrap();
        socket.send(Message::text(TEXT)).await.unwrap();
        let _ = wait.await;
    })
    .await;
    let outcome = run_with(&url, WebSocketOptions::new().no_message_timeout(short)).await;
    let error = source(cut_off(outcome));
    assert!(matches!(error, ClientError::Silent(limit) if limit == short), "{error:?}");
    assert_eq!(error.truncated_by(), Some(TruncatedBy::Timeout));
    drop(done);
}

/// A server that begins, then sends pings for ever.
async fn pings() -> String {
    server(async |mut socket, _| {
        socket.send(Message::text(STARTED)).await.unwrap();
        socket.send(Message::text(TEXT)).await.unwrap();
        while socket.send(Message::Ping(Vec::new().into())).await.is_ok() {
            sleep(Duration::from_millis(10)).await;
        }
    })
    .await
}

#[tokio::test]
async fn pings_come_and_no_event() {
    let options = WebSocketOptions::new().no_message_timeout(Duration::from_secs(5));
    let short = Duration::from_millis(150);
    let error = source(cut_off(run_with(&pings().await, options.clone().no_event_timeout(short)).await));
    assert!(matches!(error, ClientError::NoEvent(limit) if limit == short), "{error:?}");
    assert_eq!(error.truncated_by(), Some(TruncatedBy::Timeout));
    let error = source(cut_off(run_with(&pings().await, options.deadline(short)).await));
    assert!(matches!(error, ClientError::Deadline(limit) if limit == short), "{error:?}");
    assert_eq!(error.truncated_by(), Some(TruncatedBy::Timeout));
}

#[tokio::test]
async fn pings_are_a_sign_of_life() {
    let url = server(async |mut socket, _| {
        socket.send(Message::text(STARTED)).await.unwrap();
        for _ in 0..8 {
            sleep(Duration::from_millis(100)).await;
            socket.send(Message::Ping(Vec::new().into())).await.unwrap();
        }
        socket.send(Message::text(TEXT)).await.unwrap();
        socket.send(Message::text(FINISHED)).await.unwrap();
        close(socket, None).await;
    })
    .await;
    assert_whole(&run_with(&url, WebSocketOptions::new().no_message_timeout(Duration::from_millis(500))).await);
}

/// A server that does not close when a run is over, and reports the messages that it gets then.
async fn stays_open(messages: &'static [&'static str]) -> (String, oneshot::Receiver<Message>) {
    let (tell, told) = oneshot::channel();
    let url = server(async move |mut socket, _| {
        for text in messages {
            socket.send(Message::text(*text)).await.unwrap();
        }
        tell.send(socket.next().await.unwrap().unwrap()).unwrap();
        while socket.next().await.is_some() {}
    })
    .await;
    (url, told)
}

#[tokio::test]
async fn after_the_end_of_a_run_the_socket_is_closed() {
    let options = WebSocketOptions::new().after_run(Duration::from_millis(50));
    let (url, told) = stays_open(&WHOLE).await;
    assert_whole(&run_with(&url, options.clone()).await);
    assert_eq!(soon(told).await, Message::Close(closing(1000, "")));

    // R4: late events are given.
    let (url, told) = stays_open(&[STARTED, TEXT, FINISHED, r#"{"type":"RUN_ERROR","message":"late"}"#]).await;
    let late = run_with(&url, options.clone()).await;
    assert!(late.error.is_none());
    assert_eq!(late.outcome.as_deref(), Some("error"));
    soon(told).await;

    // A second run is waited for.
    let (url, _told) = stays_open(&[STARTED, TEXT, FINISHED, STARTED]).await;
    let second = run_with(&url, options.no_message_timeout(Duration::from_millis(200))).await;
    assert!(matches!(source(cut_off(second)), ClientError::Silent(_)));
}

#[tokio::test]
async fn without_that_it_is_for_the_server_to_close() {
    let (tell, told) = oneshot::channel::<()>();
    let url = server(async |mut socket, _| {
        for text in WHOLE {
            socket.send(Message::text(text)).await.unwrap();
        }
        soon(told).await;
        socket.send(Message::text(STARTED)).await.unwrap();
        socket.send(Message::text(FINISHED)).await.unwrap();
        close(socket, None).await;
    })
    .await;
    let mut events =
        agent(&url, WebSocketOptions::new().after_run(None)).start(RunAgentInput::new("t", "r", [])).await.unwrap();
    for _ in WHOLE {
        assert!(events.next().await.unwrap().is_ok());
    }
    assert!(timeout(Duration::from_millis(100), events.next()).await.is_err());
    tell.send(()).unwrap();
    assert_eq!(events.try_collect::<Vec<_>>().await.unwrap().len(), 2);
}

/// Messages that come after so many milliseconds each, and the time at which the events end.
async fn ends_after(messages: &'static [(u64, &'static str)], options: WebSocketOptions) -> (Outcome, u128) {
    let began = tokio::time::Instant::now();
    let messages = stream::iter(messages).then(async |(wait, text)| {
        sleep(Duration::from_millis(*wait)).await;
        Ok::<_, tungstenite::Error>(Message::text(*text))
    });
    let socket = Box::pin(messages.chain(stream::pending()));
    let outcome = outcome(socket.agent_events_with(options)).await;
    (outcome, began.elapsed().as_millis())
}

#[tokio::test(start_paused = true)]
async fn each_timer_begins_anew_with_what_it_waits_for() {
    let second = Duration::from_secs(1);
    let quiet = WebSocketOptions::new().no_message_timeout(None);
    // After the end of a run: another one, which ends late.
    let options = quiet.clone().after_run(second);
    let twice = ends_after(&[(0, STARTED), (0, FINISHED), (600, STARTED), (600, FINISHED)], options).await;
    assert!(twice.0.error.is_none(), "{:?}", twice.0.error);
    assert_eq!(twice.1, 600 + 600 + 1000);

    // An event.
    let (cut, at) = ends_after(&[(0, STARTED), (900, TEXT), (900, TEXT)], quiet.no_event_timeout(second)).await;
    assert!(matches!(source(cut.error.unwrap()), ClientError::NoEvent(limit) if limit == second));
    assert_eq!(at, 900 + 900 + 1000);
}

/// A server that streams for ever, and reports when its client has gone and its last message.
async fn endless() -> (String, oneshot::Receiver<Option<Message>>) {
    let (tell, told) = oneshot::channel();
    let url = server(async move |mut socket, _| {
        socket.send(Message::text(STARTED)).await.unwrap();
        let goodbye = loop {
            match timeout(Duration::from_millis(5), socket.next()).await {
                Err(_) => {
                    let _ = socket.send(Message::text(r#"{"type":"CUSTOM","name":"tick","value":1}"#)).await;
                }
                Ok(message) => break message.and_then(Result::ok),
            }
        };
        let _ = tell.send(goodbye);
    })
    .await;
    (url, told)
}

#[tokio::test]
async fn to_drop_is_to_abort() {
    let (url, told) = endless().await;
    let agent: Arc<dyn Agent> = Arc::new(WebSocketAgent::new(&url).unwrap());
    let mut updates = agent.updates(input()).await.unwrap();
    assert!(updates.next().await.unwrap().is_ok());
    drop(updates);
    let goodbye = soon(told).await;
    assert_eq!(goodbye, Some(Message::Close(closing(1000, ""))));
}

#[test]
fn dropping_it_after_its_runtime_does_no_harm() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let events = runtime.block_on(async {
        let (url, _) = endless().await;
        let mut events = WebSocketAgent::new(&url).unwrap().start(input()).await.unwrap();
        assert!(events.next().await.unwrap().is_ok());
        events
    });
    drop(runtime);
    drop(events);
}

#[tokio::test]
async fn a_handle_aborts() {
    let (url, told) = endless().await;
    let mut events = WebSocketAgent::new(&url).unwrap().start(input()).await.unwrap();
    let handle = events.abort_handle();
    assert!(events.next().await.unwrap().is_ok());
    handle.abort();
    let Some(Err(Error::Source(last))) = events.next().await else { panic!("no error") };
    assert!(matches!(last, ClientError::Aborted), "{last:?}");
    assert_eq!((last.truncated_by(), last.rule()), (Some(TruncatedBy::Close), Some(Rule::R8)));
    assert!(events.next().await.is_none());
    // Though the stream is still there.
    soon(told).await;

    // An agent's handle, while the socket is opened, and one that is waited on.
    let (done, wait) = oneshot::channel::<()>();
    let url = listens(async |_socket| {
        let _ = wait.await;
    })
    .await;
    let (agent, handle) = WebSocketAgent::new(&url).unwrap().abortable();
    let (result, ()) = tokio::join!(agent.updates(input()), async {
        sleep(Duration::from_millis(20)).await;
        handle.abort();
    });
    match result {
        Err(Error::Source(error)) => assert!(matches!(error.downcast_ref(), Some(ClientError::Aborted))),
        other => panic!("{other:?}"),
    }
    drop(done);
}

#[tokio::test]
async fn an_abort_wakes_who_waits() {
    let (events, _remote) = scripted([Step::Give(Ok(Message::text(STARTED))), Step::Park]);
    let handle = events.abort_handle();
    let mut events = tokio_test::task::spawn(events);
    assert!(tokio_test::assert_ready!(events.poll_next()).unwrap().is_ok());
    tokio_test::assert_pending!(events.poll_next());
    assert!(!events.is_woken() && !handle.is_aborted());
    handle.clone().abort();
    assert!(events.is_woken() && handle.is_aborted());
    let last = tokio_test::assert_ready!(events.poll_next());
    assert!(matches!(last, Some(Err(Error::Source(ClientError::Aborted)))), "{last:?}");
}

#[tokio::test]
async fn the_handle_of_an_agent_aborts_its_open_streams_and_later_runs() {
    let (url, told) = endless().await;
    let whole = WebSocketAgent::new(&url).unwrap();
    let (agent, handle) = whole.abortable();
    let mut events = agent.clone().start(input()).await.unwrap();
    assert!(events.next().await.unwrap().is_ok());
    assert!(!handle.is_aborted());
    handle.abort();
    let last = events.next().await;
    assert!(matches!(last, Some(Err(Error::Source(ClientError::Aborted)))), "{last:?}");
    soon(told).await;

    // A run begun afterwards ends at once, whether there is a server or not.
    assert!(handle.is_aborted() && events.abort_handle().is_aborted());
    for agent in [&agent, &agent.clone()] {
        let error = agent.start(input()).await.unwrap_err();
        assert!(matches!(error, ClientError::Aborted), "{error:?}");
    }
    // The agent that it was made from is another.
    let (other, handle) = whole.abortable();
    assert!(!handle.is_aborted());
    let error = other.start(input()).await.unwrap_err();
    assert!(matches!(error, ClientError::Connect(_)), "nobody listens any more: {error:?}");
}

#[tokio::test]
async fn an_abort_after_the_end_of_a_run_does_not_take_it_back() {
    let (events, _remote) = scripted([Step::Give(Ok(Message::text(FINISHED))), Step::Park]);
    let handle = events.abort_handle();
    let mut events = tokio_test::task::spawn(events);
    assert!(tokio_test::assert_ready!(events.poll_next()).unwrap().is_ok());
    handle.abort();
    let error = tokio_test::assert_ready!(events.poll_next()).unwrap().unwrap_err();
    assert!(!error.is_truncated(), "R8a: {error}");
    assert_eq!(error.to_string(), "the source failed: after the end of the run: aborted");
}

/// Never more at once than a server's socket holds.
#[tokio::test]
async fn an_input_that_is_not_taken_is_not_waited_for_for_ever() {
    let (tell, told) = oneshot::channel();
    let (done, wait) = oneshot::channel::<()>();
    let url = listens(async |socket| {
        let _socket = accept_async(socket).await.unwrap();
        tell.send(()).unwrap();
        let _ = wait.await;
    })
    .await;
    let mut input = input();
    input.messages.push(UserMessage::new("long", "x".repeat(32 << 20)).into());
    let agent = WebSocketAgent::new(&url).unwrap();
    let (result, ()) = tokio::join!(agent.start(input), async {
        soon(told).await;
        // From here on time passes when nothing else happens.
        tokio::time::pause();
    });
    let error = result.unwrap_err();
    assert!(matches!(error, ClientError::NotSent(limit) if limit == WebSocketOptions::DEFAULT_NO_MESSAGE), "{error:?}");
    assert_eq!((error.truncated_by(), error.rule()), (None, None));
    drop(done);
}

#[tokio::test]
async fn an_input_longer_than_what_may_wait_is_sent_whole() {
    let (tell, told) = oneshot::channel();
    let url = listens(async move |socket| {
        let config = tungstenite::protocol::WebSocketConfig::default().max_frame_size(None).max_message_size(None);
        let mut socket = tokio_tungstenite::accept_async_with_config(socket, Some(config)).await.unwrap();
        tell.send(socket.next().await.unwrap().unwrap().len()).unwrap();
        for text in WHOLE {
            socket.send(Message::text(text)).await.unwrap();
        }
        close(socket, None).await;
    })
    .await;
    let mut input = input();
    input.messages.push(UserMessage::new("long", "x".repeat(8 << 20)).into());
    assert_whole(&outcome(WebSocketAgent::new(&url).unwrap().start(input).await.unwrap()).await);
    assert!(soon(told).await > 8 << 20);
}

#[tokio::test]
async fn a_deadline_counts_from_the_start_and_not_from_the_open_socket() {
    let (go, gone) = oneshot::channel();
    let url = listens(async move |socket| {
        soon(gone).await;
        let mut socket = accept_async(socket).await.unwrap();
        while socket.next().await.is_some() {}
    })
    .await;
    let limit = Duration::from_secs(10);
    let agent = WebSocketAgent::builder(&url).options(WebSocketOptions::new().deadline(limit)).connect_timeout(None);
    let agent = agent.build().unwrap();
    let began = tokio::time::Instant::now();
    let (events, ()) = tokio::join!(agent.start(RunAgentInput::new("t", "r", [])), async {
        tokio::time::pause();
        tokio::time::advance(limit / 2).await;
        tokio::time::resume();
        go.send(()).unwrap();
    });
    let mut events = events.unwrap();
    tokio::time::pause();
    let last = events.next().await;
    assert!(matches!(last, Some(Err(Error::Source(ClientError::Deadline(after)))) if after == limit), "{last:?}");
    assert!(began.elapsed() < limit + limit / 2);
}

#[tokio::test]
async fn limits_longer_than_the_clock_never_fire() {
    let longest = Duration::MAX;
    let options = WebSocketOptions::new()
        .no_message_timeout(longest)
        .no_event_timeout(longest)
        .deadline(longest)
        .after_run(longest);
    let url = says(WHOLE).await;
    let agent = WebSocketAgent::builder(&url).options(options).connect_timeout(longest).build().unwrap();
    assert_whole(&outcome(agent.start(input()).await.unwrap()).await);
}

/// A server that begins a run, and then writes the same bytes again and again.
async fn floods(bytes: Vec<u8>) -> String {
    server(async move |mut socket, _| {
        for text in [STARTED, TEXT] {
            socket.send(Message::text(text)).await.unwrap();
        }
        let socket = socket.get_mut();
        // The first fragment of a message.
        socket.write_all(&frame(false, 1, b"")).await.unwrap();
        while socket.write_all(&bytes).await.is_ok() {}
    })
    .await
}

#[tokio::test]
async fn fragments_without_end_meet_the_limit() {
    let limits = Limits { max_event_bytes: 100_000, ..Limits::default() };
    let url = floods(frame(false, 0, &[b' '; 1000])).await;
    match run_with(&url, WebSocketOptions::new().read_with(Options::new().limits(limits))).await.error {
        Some(Error::LimitExceeded(error)) => {
            assert_eq!(*error, LimitExceeded::new(2, Limit::EventBytes, 100_000).of(LimitStage::Decoder));
        }
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_flood_of_empty_fragments_or_of_pings_does_not_starve_the_timers() {
    let short = Duration::from_millis(50);
    let fragments = frame(false, 0, b"").repeat(32 * 1024);
    let pings = frame(true, 9, b"?").repeat(16 * 1024);
    let options = WebSocketOptions::new().no_message_timeout(short);
    let error = source(cut_off(run_with(&floods(fragments.clone()).await, options).await));
    assert!(matches!(error, ClientError::Silent(limit) if limit == short), "{error:?}");
    for bytes in [fragments, pings] {
        let options = WebSocketOptions::new().no_event_timeout(short);
        let error = source(cut_off(run_with(&floods(bytes.clone()).await, options).await));
        assert!(matches!(error, ClientError::NoEvent(limit) if limit == short), "{error:?}");
        let error = source(cut_off(run_with(&floods(bytes).await, WebSocketOptions::new().deadline(short)).await));
        assert!(matches!(error, ClientError::Deadline(limit) if limit == short), "{error:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_socket_that_uses_up_the_budget_of_its_task_does_not_starve_the_timers() {
    let (second, day) = (Duration::from_secs(1), Duration::from_secs(24 * 60 * 60));
    let long = WebSocketOptions::new().no_message_timeout(None).no_event_timeout(day);
    for options in
        [long.clone().no_message_timeout(second), long.clone().no_event_timeout(second), long.clone().deadline(second)]
    {
        let mut events = greedy::<Result<Message, tungstenite::Error>>().agent_events_with(options);
        let error = next_after(&mut events, second).await.unwrap().unwrap_err();
        assert!(error.is_truncated(), "{error:?}");
    }
    // The end of a run, and a handle.
    let finished = stream::iter([Ok(Message::text(FINISHED))]);
    let mut events = finished.chain(greedy()).agent_events_with(long.clone().after_run(second));
    assert!(events.next().await.unwrap().is_ok());
    assert!(next_after(&mut events, second).await.is_none());
    let mut events = greedy::<Result<Message, tungstenite::Error>>().agent_events_with(long);
    events.abort_handle().abort();
    let last = next_after(&mut events, Duration::ZERO).await;
    assert!(matches!(last, Some(Err(Error::Source(ClientError::Aborted)))), "{last:?}");
}

#[tokio::test]
async fn answers_to_pings_that_are_not_read_take_no_memory_and_the_last_one_is_sent() {
    const PINGS: u32 = 200_000;
    let (tell, told) = oneshot::channel();
    // What the system holds of the answers is not the client's.
    let listener = TcpSocket::new_v4().unwrap();
    listener.set_recv_buffer_size(4096).unwrap();
    listener.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let listener = listener.listen(1).unwrap();
    let url = format!("ws://{}/agent", listener.local_addr().unwrap());
    tokio::spawn(async move {
        let mut socket = accept_async(listener.accept().await.unwrap().0).await.unwrap();
        socket.next().await.unwrap().unwrap();
        let mut bytes = Vec::new();
        for ping in 0..PINGS {
            bytes.extend(frame(true, 9, &[&ping.to_be_bytes()[..], &[0; 121]].concat()));
        }
        // Nothing is read meanwhile.
        socket.get_mut().write_all(&bytes).await.unwrap();
        for text in WHOLE {
            socket.send(Message::text(text)).await.unwrap();
        }
        let mut answers = Vec::new();
        while answers.last() != Some(&(PINGS - 1)) {
            match socket.next().await {
                Some(Ok(Message::Pong(payload))) => {
                    answers.push(u32::from_be_bytes(payload[..4].try_into().unwrap()));
                }
                other => panic!("{other:?}"),
            }
        }
        tell.send(answers).unwrap();
        close(socket, None).await;
    });
    assert_whole(&run_with(&url, WebSocketOptions::new().after_run(None)).await);
    let answers = soon(told).await;
    assert!(answers.is_sorted() && answers.len() < PINGS as usize / 2, "{}", answers.len());
}

#[tokio::test]
async fn a_next_that_is_dropped_loses_nothing() {
    let url = server(async |mut socket, _| {
        for text in WHOLE {
            for byte in frame(true, 1, text.as_bytes()) {
                socket.get_mut().write_all(&[byte]).await.unwrap();
                sleep(Duration::from_micros(300)).await;
            }
        }
        close(socket, None).await;
    })
    .await;
    let mut events = WebSocketAgent::new(&url).unwrap().start(RunAgentInput::new("t", "r", [])).await.unwrap();
    let mut items = Vec::new();
    let mut dropped = 0;
    loop {
        match timeout(Duration::from_millis(1), events.next()).await {
            Ok(Some(item)) => items.push(item.unwrap().into_raw().unwrap()),
            Ok(None) => break,
            Err(_) => dropped += 1,
        }
    }
    assert_eq!(items, WHOLE.map(Into::into));
    assert!(dropped > 0);
}

#[tokio::test]
async fn the_handshake_is_never_answered() {
    let (done, wait) = oneshot::channel::<()>();
    let url = listens(async |_socket| {
        let _ = wait.await;
    })
    .await;
    let short = Duration::from_millis(100);
    let agent = WebSocketAgent::builder(&url).connect_timeout(short).build().unwrap();
    let error = agent.start(input()).await.unwrap_err();
    assert!(matches!(error, ClientError::NotConnected(limit) if limit == short), "{error:?}");
    assert_eq!(error.truncated_by(), None);

    let agent = WebSocketAgent::builder(&url).options(WebSocketOptions::new().deadline(short)).build().unwrap();
    let error = agent.start(input()).await.unwrap_err();
    assert!(matches!(error, ClientError::Deadline(_)), "{error:?}");
    drop(done);
}

#[tokio::test(start_paused = true)]
async fn to_open_the_socket_takes_ten_seconds_at_most() {
    let (done, wait) = oneshot::channel::<()>();
    let url = listens(async |_socket| {
        let _ = wait.await;
    })
    .await;
    let error = WebSocketAgent::new(&url).unwrap().start(input()).await.unwrap_err();
    let limit = WebSocketAgentBuilder::DEFAULT_CONNECT;
    assert!(matches!(error, ClientError::NotConnected(after) if after == limit), "{error:?}");
    drop(done);
}

#[tokio::test]
async fn r11_an_older_server_is_sent_what_it_accepts_and_its_events_are_limited() {
    let (tell, told) = oneshot::channel();
    let url = server(async move |mut socket, input| {
        tell.send(input).unwrap();
        for text in [STARTED, older::SUBAGENT, TEXT, FINISHED] {
            socket.send(Message::text(text)).await.unwrap();
        }
        close(socket, None).await;
    })
    .await;
    let agent = WebSocketAgent::builder(&url).max_protocol_version(older::VERSION).build().unwrap();
    let items: Vec<_> = agent.run(older::with_a_subagent(input())).await.unwrap().items().try_collect().await.unwrap();
    older::check(&soon(told).await, &items);
}

#[tokio::test]
async fn a_frame_that_announces_too_much_is_refused_before_it_comes() {
    let limits = Limits { max_event_bytes: 1000, ..Limits::default() };
    let (done, wait) = oneshot::channel::<()>();
    let url = server(async |mut socket, _| {
        socket.send(Message::text(STARTED)).await.unwrap();
        let head = [&[0x81, 127][..], &(1_u64 << 20).to_be_bytes()].concat();
        socket.get_mut().write_all(&head).await.unwrap();
        let _ = wait.await;
    })
    .await;
    let error = run_with(&url, WebSocketOptions::new().read_with(Options::new().limits(limits))).await.error;
    let exceeded = LimitExceeded::new(1, Limit::EventBytes, 1000).of(LimitStage::Decoder);
    assert!(matches!(&error, Some(Error::LimitExceeded(error)) if **error == exceeded), "{error:?}");
    drop(done);
}

/// A server that reads a request and answers with these bytes.
async fn answers(bytes: impl Into<Vec<u8>>) -> String {
    let bytes = bytes.into();
    listens(async move |mut socket| {
        let mut request = Vec::new();
        while !request.ends_with(b"\r\n\r\n") {
            assert!(socket.read_buf(&mut request).await.unwrap() > 0);
        }
        let _ = socket.write_all(&bytes).await;
        let _ = socket.shutdown().await;
        // Until the client has read it.
        let _ = socket.read_to_end(&mut request).await;
    })
    .await
}

#[tokio::test]
async fn an_answer_that_opens_no_socket() {
    let error = refused(&answers("HTTP/1.1 403 Forbidden\r\ncontent-length: 5\r\n\r\nnever").await).await;
    assert_eq!(error.status().unwrap().as_u16(), 403);
    assert_eq!(error.to_string(), "the server answered 403 Forbidden: \"never\"");

    let page = format!("HTTP/1.1 200 OK\r\n\r\n{}", "ä".repeat(100_000));
    match refused(&answers(page).await).await {
        ClientError::Status(answer) => {
            assert_eq!(answer.status.as_u16(), 200);
            assert!(!answer.excerpt.is_empty() && answer.excerpt.len() <= 4096, "{}", answer.excerpt.len());
        }
        other => panic!("{other:?}"),
    }

    let no_key = "HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\nconnection: upgrade\r\n\r\n";
    for bytes in [no_key, "SSH-2.0-OpenSSH_9.6\r\n\r\n"] {
        let error = refused(&answers(bytes).await).await;
        assert!(matches!(error, ClientError::NoAnswer(_)), "{error:?}");
        assert!(std::error::Error::source(&error).is_some());
    }
    let error = refused(&answers("HTTP/1.1 101 Swit").await).await;
    assert!(matches!(error, ClientError::Connect(_)), "{error:?}");
}

#[tokio::test]
async fn no_server() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("ws://{}/?token=secret", listener.local_addr().unwrap());
    drop(listener);
    let error = refused(&url).await;
    assert!(matches!(error, ClientError::Connect(_)), "{error:?}");
    assert!(!format!("{error:?} {error}").contains("secret"));
    // TLS is for the user to choose.
    let error = refused(&answers("").await.replace("ws://", "wss://")).await;
    assert!(matches!(error, ClientError::NoTls(_)), "{error:?}");
    assert!(error.to_string().contains("native-tls"), "{error}");
}

#[test]
fn what_cannot_be_built() {
    for url in ["", "agent", "/agent", "http://localhost/agent", "ws://", "ws://a b", "file:///agent"] {
        let error = WebSocketAgent::new(url).unwrap_err();
        assert!(matches!(error, ClientError::Request(_)), "{url}: {error:?}");
        assert!(std::error::Error::source(&error).is_some());
    }
    for (name, value) in [("a b", "c"), ("a", "b\nc")] {
        let error = WebSocketAgent::builder("ws://localhost").header(name, value).build().unwrap_err();
        assert!(matches!(error, ClientError::Prepare(_)), "{error:?}");
    }
    assert!(WebSocketAgent::builder("ws://localhost").bearer("a\nb").build().is_err());
}

#[tokio::test]
async fn a_hook_that_fails() {
    let agent =
        WebSocketAgent::builder("ws://127.0.0.1:1").prepare(async |_| Err(BoxError::from("no token"))).build().unwrap();
    let error = agent.start(input()).await.unwrap_err();
    assert!(matches!(error, ClientError::Prepare(_)), "{error:?}");
    assert_eq!(std::error::Error::source(&error).unwrap().to_string(), "no token");
}

/// Sends a run, as the documentation of `to_json` has it. Gives how to close then.
async fn send<S>(run: impl Stream<Item = &'static str>, socket: &mut S) -> Option<CloseFrame>
where
    S: Sink<Message, Error = tungstenite::Error> + Unpin,
{
    let mut texts = std::pin::pin!(run.items().to_json());
    loop {
        match texts.next().await {
            Some(Ok(text)) => socket.send(Message::text(text)).await.unwrap(),
            Some(Err(_)) => break closing(1011, "the run broke off"),
            None => break closing(1000, ""),
        }
    }
}

/// A server that answers each input over the same socket.
async fn answers_each(socket: TcpStream) {
    let mut socket = accept_async(socket).await.unwrap();
    while let Some(Ok(message)) = socket.next().await {
        if message.is_text() {
            send(stream::iter(WHOLE), &mut socket).await;
        }
    }
}

#[tokio::test]
async fn one_socket_for_many_runs() {
    let url = listens(answers_each).await;
    let (mut socket, _) = connect_async(&url).await.unwrap();
    let options = WebSocketOptions::new().after_run(Duration::ZERO);
    for _ in 0..3 {
        socket.send(Message::text("{}")).await.unwrap();
        assert_whole(&outcome((&mut socket).agent_events_with(options.clone())).await);
    }
    socket.close(None).await.unwrap();
}

#[tokio::test]
async fn a_half_of_a_socket_does_too() {
    let (near, far) = tokio::io::duplex(16);
    let server = async {
        let mut socket = accept_async(far).await.unwrap();
        assert!(socket.next().await.unwrap().is_ok());
        // A run that does not break off can be forwarded as well.
        let messages = stream::iter(WHOLE).items().to_json().map_ok(Message::text);
        let (sink, rest) = socket.split();
        messages.map_err(BoxError::from).forward(sink.sink_map_err(BoxError::from)).await.unwrap();
        drop(rest);
    };
    let client = async {
        let (socket, _) = client_async("ws://localhost/", near).await.unwrap();
        let (mut sink, messages) = socket.split();
        sink.send(Message::text("{}")).await.unwrap();
        outcome(messages.agent_events()).await
    };
    let ((), outcome) = tokio::join!(server, client);
    assert_whole(&outcome);
}

#[tokio::test]
async fn the_output_of_a_gateway_is_legal() {
    let url = server(async |mut socket, _| {
        let run = stream::iter([STARTED, TEXT, r#"{"type":"TOOL_CALL_END","toolCallId":"c"}"#, FINISHED]);
        let goodbye = send(run, &mut socket).await;
        close(socket, goodbye).await;
    })
    .await;
    let error = source(cut_off(run(&url).await));
    assert_eq!(error.close_code(), Some(1011));
}

/// Events of messages without a socket.
fn scripted(
    steps: impl IntoIterator<Item = Step<Result<Message, tungstenite::Error>>>,
) -> (WebSocketEvents<support::stream::Script<Result<Message, tungstenite::Error>>>, support::stream::Remote) {
    let (source, remote) = script(steps);
    (source.agent_events(), remote)
}

#[tokio::test]
async fn it_is_fused_and_the_socket_is_dropped_at_its_end() {
    let text = |text: &str| Step::Give(Ok(Message::text(text)));
    for (last, is_error) in [
        (None, false),
        (Some(Step::Give(Ok(Message::Close(None)))), false),
        (Some(Step::Give(Err(tungstenite::Error::ConnectionClosed))), false),
        (Some(Step::Give(Err(tungstenite::Error::AlreadyClosed))), false),
        (Some(Step::Give(Err(tungstenite::Error::AttackAttempt))), true),
        (Some(Step::Give(Ok(Message::Close(closing(1011, ""))))), true),
    ] {
        let steps = [Step::Yield, Step::Give(Ok(Message::Pong(Vec::new().into()))), text(STARTED), text(TEXT)];
        let (mut events, remote) = scripted(steps.into_iter().chain(last));
        for _ in 0..2 {
            assert_eq!(events.size_hint(), (0, None));
            assert!(!events.is_terminated());
            assert!(events.next().await.unwrap().is_ok());
        }
        if is_error {
            assert!(!events.is_terminated());
            assert!(events.next().await.unwrap().is_err());
        }
        for _ in 0..3 {
            assert!(events.next().await.is_none());
            assert!(events.is_terminated() && remote.is_dropped());
            assert_eq!(events.size_hint(), (0, Some(0)));
        }
    }
}

#[tokio::test]
async fn pings_without_end_let_other_tasks_run() {
    let pings = stream::repeat_with(|| Ok(Message::Ping(Vec::new().into())));
    let mut events = tokio_test::task::spawn(pings.agent_events());
    for _ in 0..3 {
        tokio_test::assert_pending!(events.poll_next());
        assert!(events.is_woken());
    }
}

#[tokio::test]
async fn the_task_that_polled_last_is_woken() {
    let (mut events, remote) = scripted([Step::Park, Step::Give(Ok(Message::text(STARTED)))]);
    let mut first = tokio_test::task::spawn(events.next());
    tokio_test::assert_pending!(first.poll());
    drop(first);
    let mut second = tokio_test::task::spawn(events.next());
    tokio_test::assert_pending!(second.poll());
    remote.wake();
    assert!(second.is_woken());
    assert!(tokio_test::assert_ready!(second.poll()).unwrap().is_ok());
}
