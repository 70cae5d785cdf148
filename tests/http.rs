//! The HTTP client against scripted servers, byte by byte, over real sockets.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test")]

use std::sync::Arc;
use std::time::{Duration, Instant};

use ag_ui_stream::client::{
    AbortHandle, ClientError, HttpAgent, HttpAgentBuilder, HttpEvents, HttpOptions, ResponseExt, reqwest,
};
use ag_ui_stream::codec::Format;
use ag_ui_stream::error::{AgentError, Limit, LimitExceeded, LimitStage, Truncated, TruncatedBy};
use ag_ui_stream::message::{ActivityMessage, Message, UserMessage};
use ag_ui_stream::{Agent, AgentExt, Error, EventStreamExt, Limits, Options, RawItem, Rule, RunAgentInput};
use axum::http::Response;
use futures::{Stream, StreamExt, TryStreamExt, stream};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{mpsc, oneshot};

mod support {
    #![allow(unreachable_pub, reason = "each test has its own copy")]
    pub mod older;
    pub mod stream;
}

use support::older;
use support::stream::{greedy, next_after};

const STARTED: &str = "data: {\"type\":\"RUN_STARTED\",\"threadId\":\"t\",\"runId\":\"r\"}\n\n";
const TEXT: &str = "data: {\"type\":\"TEXT_MESSAGE_CHUNK\",\"messageId\":\"m\",\"delta\":\"Zwölf Äpfel 🍎\"}\n\n";
const FINISHED: &str = "data: {\"type\":\"RUN_FINISHED\",\"threadId\":\"t\",\"runId\":\"r\"}\n\n";
const SSE: &str = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
const CHUNKED: &str =
    "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; charset=utf-8\r\ntransfer-encoding: chunked\r\n\r\n";

fn whole() -> String {
    format!("{STARTED}{TEXT}{FINISHED}")
}

/// A server that reads one request and gives this answer. Returns its address.
async fn server<F, Fut>(answer: F) -> String
where
    F: FnOnce(TcpStream, String) -> Fut + Send + 'static,
    Fut: Future<Output = ()> + Send,
{
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/agent", listener.local_addr().unwrap());
    tokio::spawn(async move {
        let (mut socket, _) = listener.accept().await.unwrap();
        let request = read_request(&mut socket).await;
        answer(socket, request).await;
    });
    url
}

async fn read_request(socket: &mut TcpStream) -> String {
    let mut bytes = Vec::new();
    loop {
        let text = String::from_utf8_lossy(&bytes);
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head.lines().find_map(|line| {
                let (name, value) = line.split_once(':')?;
                name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse::<usize>().unwrap())
            });
            if body.len() >= length.unwrap_or(0) {
                return text.into_owned();
            }
        }
        assert!(socket.read_buf(&mut bytes).await.unwrap() > 0, "the request ends early");
    }
}

/// A server that answers with these bytes, and closes.
async fn says(bytes: impl Into<Vec<u8>>) -> String {
    let bytes = bytes.into();
    server(async move |mut socket, _| {
        let _ = socket.write_all(&bytes).await;
        let _ = socket.shutdown().await;
    })
    .await
}

/// A server that sends one piece again and again.
async fn drips(head: String, piece: &'static [u8], every: Duration) -> String {
    server(async move |mut socket, _| {
        socket.write_all(head.as_bytes()).await.unwrap();
        while socket.write_all(piece).await.is_ok() {
            if !every.is_zero() {
                tokio::time::sleep(every).await;
            }
        }
    })
    .await
}

fn input() -> RunAgentInput {
    RunAgentInput::new("t", "r", [Message::from(UserMessage::new("u", "Hello"))])
}

fn agent(url: &str, options: HttpOptions) -> HttpAgent {
    HttpAgent::builder(url).options(options).build().unwrap()
}

/// The result of a run: the text of the message `m`, the outcome, and the error that ended it.
struct Outcome {
    text: Option<String>,
    outcome: Option<String>,
    error: Option<Error<ClientError>>,
}

async fn run_with(url: &str, options: HttpOptions) -> Outcome {
    let events = agent(url, options).start(input()).await.unwrap();
    let mut updates = events.updates();
    let error = loop {
        match updates.next().await {
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

async fn run(url: &str) -> Outcome {
    run_with(url, HttpOptions::new()).await
}

async fn refused(url: &str) -> ClientError {
    let error = HttpAgent::new(url).unwrap().start(input()).await.unwrap_err();
    assert_eq!(error.truncated_by(), None);
    error
}

fn assert_whole(outcome: &Outcome) {
    assert!(outcome.error.is_none(), "{:?}", outcome.error);
    assert_eq!(outcome.text.as_deref(), Some("Zwölf Äpfel 🍎"));
    assert_eq!(outcome.outcome.as_deref(), Some("success"));
}

fn source(error: Option<Error<ClientError>>) -> ClientError {
    match error {
        Some(Error::Source(error)) => error,
        other => panic!("{other:?}"),
    }
}

fn chunk(bytes: &[u8]) -> Vec<u8> {
    [format!("{:x}\r\n", bytes.len()).as_bytes(), bytes, b"\r\n"].concat()
}

#[test]
fn what_is_shared_between_threads() {
    fn sent<T: Send + Unpin + 'static>() {}
    fn shared<T: Send + Sync + Unpin + Clone + 'static>() {}
    sent::<HttpEvents>();
    sent::<ClientError>();
    sent::<HttpAgentBuilder>();
    shared::<HttpAgent>();
    shared::<AbortHandle>();
    shared::<HttpOptions>();
}

#[tokio::test]
async fn a_run_over_sse() {
    assert_whole(&run(&says(format!("{SSE}{}", whole())).await).await);
}

#[tokio::test]
async fn any_cut_into_chunks_is_the_same() {
    for size in [1, 2, 3, 7, 64] {
        let url = server(async move |mut socket, _| {
            socket.set_nodelay(true).unwrap();
            socket.write_all(CHUNKED.as_bytes()).await.unwrap();
            for piece in whole().as_bytes().chunks(size) {
                // The frame of a chunk is cut as well.
                let bytes = chunk(piece);
                let (one, two) = bytes.split_at(bytes.len() / 2);
                socket.write_all(one).await.unwrap();
                tokio::task::yield_now().await;
                socket.write_all(two).await.unwrap();
            }
            socket.write_all(b"0\r\n\r\n").await.unwrap();
        })
        .await;
        assert_whole(&run(&url).await);
    }
}

#[cfg(feature = "protobuf")]
#[tokio::test]
async fn a_run_over_protobuf() {
    use ag_ui_stream::Event;

    let mut body = Vec::new();
    for line in whole().split_terminator("\n\n") {
        let value: Value = serde_json::from_str(line.strip_prefix("data: ").unwrap()).unwrap();
        let (event, _) = Event::from_value(&value).unwrap();
        body.extend(Format::Protobuf.encode(&event.unwrap()).unwrap());
    }
    let head = "HTTP/1.1 200 OK\r\ncontent-type: application/vnd.ag-ui.event+proto\r\nconnection: close\r\n\r\n";
    for size in [1, 5, 1000] {
        let body = body.clone();
        let url = server(async move |mut socket, request| {
            let request = request.to_ascii_lowercase();
            assert!(request.contains("application/vnd.ag-ui.event+proto"), "{request}");
            socket.set_nodelay(true).unwrap();
            socket.write_all(head.as_bytes()).await.unwrap();
            for piece in body.chunks(size) {
                socket.write_all(piece).await.unwrap();
            }
        })
        .await;
        assert_whole(&run(&url).await);
    }
    let outcome = run(&says([head.as_bytes(), &body[..body.len() - 3]].concat()).await).await;
    assert!(matches!(outcome.error, Some(Error::Truncated(error)) if error.by == TruncatedBy::Partial));
    assert_eq!(outcome.outcome.as_deref(), Some("truncated"));
    let outcome = run(&says([head.as_bytes(), b"\0\0\0\x02\xff\xff"].concat()).await).await;
    assert!(matches!(outcome.error, Some(Error::Malformed(_))), "{:?}", outcome.error);
}

#[tokio::test]
async fn t4_what_is_sent() {
    let (tell, told) = oneshot::channel();
    let url = server(async move |mut socket, request| {
        tell.send(request).unwrap();
        socket.write_all(format!("{SSE}{}", whole()).as_bytes()).await.unwrap();
    })
    .await;
    let mut input = input();
    input.messages.push(ActivityMessage::new("a", "SEARCH", serde_json::Map::new()).into());
    let agent = HttpAgent::builder(&url)
        .header("X-Tenant", "one")
        .bearer("stale")
        .prepare(|request| async { Ok(request.header("x-signature", "signed")) })
        .build()
        .unwrap();
    assert!(!format!("{agent:?}").contains("stale"));
    let _ = agent.start(input).await.unwrap();

    let request = told.await.unwrap();
    let (head, body) = request.split_once("\r\n\r\n").unwrap();
    let head = head.to_ascii_lowercase();
    for line in [
        "post /agent http/1.1",
        "content-type: application/json",
        "accept-encoding: identity",
        "x-tenant: one",
        "authorization: bearer stale",
        "x-signature: signed",
    ] {
        assert!(head.lines().any(|each| each == line), "{line}: {head}");
    }
    assert!(head.lines().any(|line| line.starts_with("accept: text/event-stream")), "{head}");
    assert_eq!(
        serde_json::from_str::<Value>(body).unwrap(),
        json!({
            "protocolVersion": "1.0", "threadId": "t", "runId": "r", "state": {}, "tools": [], "context": [],
            "forwardedProps": {}, "messages": [{"id": "u", "role": "user", "content": "Hello"}],
        })
    );
}

#[tokio::test]
async fn r11_an_older_server_is_sent_what_it_accepts_and_its_events_are_limited() {
    let (tell, told) = oneshot::channel();
    let url = server(async move |mut socket, request| {
        tell.send(request).unwrap();
        let subagent = older::SUBAGENT;
        socket.write_all(format!("{SSE}{STARTED}data: {subagent}\n\n{TEXT}{FINISHED}").as_bytes()).await.unwrap();
    })
    .await;
    let agent = HttpAgent::builder(&url).max_protocol_version(older::VERSION).build().unwrap();
    let items: Vec<_> = agent.run(older::with_a_subagent(input())).await.unwrap().items().try_collect().await.unwrap();

    let request = told.await.unwrap();
    let body: Value = serde_json::from_str(request.split_once("\r\n\r\n").unwrap().1).unwrap();
    older::check(&body, &items);
}

#[tokio::test]
async fn t4_nothing_is_sent_of_a_malformed_input() {
    let agent = HttpAgent::new("http://127.0.0.1:1/").unwrap();
    let mut input = input();
    input.state = Some(Value::Null);
    match agent.start(input).await.unwrap_err() {
        ClientError::Input(error) => assert_eq!(error.path, "/state"),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn what_cannot_be_built() {
    fn is_header(builder: HttpAgentBuilder) -> bool {
        matches!(builder.build(), Err(ClientError::Prepare(_)))
    }
    assert!(matches!(HttpAgent::new("no address"), Err(ClientError::Request(_))));
    assert!(is_header(HttpAgent::builder("http://localhost").header("a b", "c")));
    assert!(is_header(HttpAgent::builder("http://localhost").header("a", "c\n")));
    assert!(is_header(HttpAgent::builder("http://localhost").bearer("c\n")));
}

#[tokio::test]
async fn no_server() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/?key=secret", listener.local_addr().unwrap());
    drop(listener);
    let error = refused(&url).await;
    assert!(matches!(error, ClientError::Connect(_)), "{error:?}");
    assert!(std::error::Error::source(&error).is_some());
    assert!(!format!("{error:?}").contains("secret"));
    let error = refused(&server(async |socket, _| drop(socket)).await).await;
    assert!(matches!(error, ClientError::NoAnswer(_)), "{error:?}");
}

#[tokio::test]
async fn https_without_tls_says_what_to_do() {
    let agent = HttpAgent::new("https://127.0.0.1:1/agent?secret=1").unwrap();
    let error = agent.start(input()).await.unwrap_err();
    assert!(matches!(error, ClientError::NoTls(_)), "{error:?}");
    assert!(error.to_string().contains("rustls"), "{error}");
    assert!(!format!("{error:?}").contains("secret"), "{error:?}");
}

#[tokio::test]
async fn a_hook_that_fails() {
    let agent = HttpAgent::builder("http://127.0.0.1:1/").prepare(|_| async { Err("no token".into()) });
    let error = agent.build().unwrap().start(input()).await.unwrap_err();
    assert!(matches!(&error, ClientError::Prepare(_)));
    assert_eq!(std::error::Error::source(&error).unwrap().to_string(), "no token");
}

#[tokio::test]
async fn a_status_with_a_body() {
    let body = "ä".repeat(10_000);
    let head = format!("HTTP/1.1 500 Oh\r\ncontent-type: text/plain\r\ncontent-length: {}\r\n\r\nx", body.len() + 1);
    match refused(&says(head + &body).await).await {
        ClientError::Status(answer) => {
            assert_eq!(answer.status.as_u16(), 500);
            // A character does not fit whole into the last byte.
            assert_eq!(answer.excerpt.len(), 4095);
            assert!(answer.excerpt.starts_with("xä") && answer.excerpt.ends_with('ä'));
        }
        other => panic!("{other:?}"),
    }
    // A body that breaks off is quoted as far as it came.
    match refused(&says("HTTP/1.1 401 No\r\ncontent-length: 100\r\n\r\nwho?").await).await {
        ClientError::Status(answer) => assert_eq!((answer.status.as_u16(), &*answer.excerpt), (401, "who?")),
        other => panic!("{other:?}"),
    }
}

fn redirect(status: u16, to: &str) -> String {
    format!("HTTP/1.1 {status} Elsewhere\r\nlocation: {to}\r\ncontent-length: 0\r\n\r\n")
}

#[tokio::test]
async fn a_redirect_that_would_drop_the_post_is_not_followed() {
    let url = says(redirect(302, "/login?token=secret")).await;
    match refused(&url).await {
        ClientError::Redirect { status, to } => {
            assert_eq!(status.as_u16(), 302);
            assert_eq!(to, url.replace("/agent", "/login"), "no secret is shown");
        }
        other => panic!("{other:?}"),
    }
    // Nothing to go to.
    let error = refused(&says("HTTP/1.1 304 Not Modified\r\n\r\n").await).await;
    assert!(matches!(&error, ClientError::Status(answer) if answer.status.as_u16() == 304), "{error:?}");
}

#[tokio::test]
async fn a_redirect_within_the_origin_repeats_the_post() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/agent", listener.local_addr().unwrap());
    let server = async {
        let mut requests = Vec::new();
        for answer in [redirect(307, "/there"), redirect(308, "again"), format!("{SSE}{}", whole())] {
            let (mut socket, _) = listener.accept().await.unwrap();
            requests.push(read_request(&mut socket).await);
            socket
                .write_all(answer.replace("content-length", "connection: close\r\ncontent-length").as_bytes())
                .await
                .unwrap();
        }
        requests
    };
    let (outcome, requests) = tokio::join!(run(&url), server);
    assert_whole(&outcome);
    for (request, path) in requests.iter().zip(["/agent", "/there", "/again"]) {
        assert!(request.starts_with(&format!("POST {path} ")), "{request}");
        assert!(request.contains("Hello"), "{request}");
    }
}

#[tokio::test]
async fn a_redirect_to_another_origin_is_sent_nothing_unless_it_is_named() {
    for status in [307, 308] {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let other = format!("http://{}", listener.local_addr().unwrap());
        let answer = redirect(status, &format!("{}/agent", other.replace("http://", "http://user:secret@")));
        let build = |url: &str| HttpAgent::builder(url).header("x-api-key", "key");

        let agent = build(&says(answer.clone()).await).build().unwrap();
        match agent.start(input()).await.unwrap_err() {
            ClientError::Redirect { to, .. } => assert_eq!(to, format!("{other}/agent")),
            error => panic!("{error:?}"),
        }
        let reached = tokio::time::timeout(Duration::from_millis(20), listener.accept()).await;
        assert!(reached.is_err(), "somebody connected");

        let agent = build(&says(answer).await).redirects_to(&other).build().unwrap();
        let (events, request) = tokio::join!(agent.events(input()), async {
            let (mut socket, _) = listener.accept().await.unwrap();
            let request = read_request(&mut socket).await;
            socket.write_all(format!("{SSE}{}", whole()).as_bytes()).await.unwrap();
            request
        });
        assert_eq!(events.unwrap().try_collect::<Vec<_>>().await.unwrap().len(), 5);
        assert!(request.contains("x-api-key: key"), "{request}");
    }
    let error = HttpAgent::builder("http://localhost").redirects_to("elsewhere").build().unwrap_err();
    assert!(matches!(error, ClientError::Request(_)), "{error:?}");
}

#[tokio::test]
async fn a_status_keeps_its_headers_and_shows_their_names_alone() {
    let answer = "HTTP/1.1 429 Slow down\r\nretry-after: 7\r\nx-request-id: r-1\r\nset-cookie: secret\r\n\r\n";
    let error = refused(&says(answer).await).await;
    let headers = error.answer().unwrap().headers();
    assert!(headers["retry-after"] == "7" && headers["x-request-id"] == "r-1");
    let shown = format!("{error:?} {error}");
    assert!(shown.contains("set-cookie") && !shown.contains("secret"), "{shown}");
}

#[tokio::test]
async fn t1a_another_content_type_is_no_success() {
    let page = "<!doctype html><title>Sign in</title>";
    let head = "HTTP/1.1 200 OK\r\nconnection: close\r\n";
    match refused(&says(format!("{head}content-type: text/html\r\n\r\n{page}")).await).await {
        ClientError::ContentType { content_type, answer } => {
            assert_eq!(content_type.as_deref(), Some("text/html"));
            assert_eq!((answer.status.as_u16(), &*answer.excerpt), (200, page));
        }
        other => panic!("{other:?}"),
    }
    for nothing in [format!("{head}\r\n{}", whole()), "HTTP/1.1 204 No\r\n\r\n".to_owned()] {
        let error = refused(&says(nothing).await).await;
        assert!(matches!(error, ClientError::ContentType { content_type: None, .. }), "{error:?}");
        assert_eq!(error.rule(), Some(Rule::T1a));
    }
}

#[tokio::test]
async fn a_compressed_answer_is_an_error() {
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-encoding: gzip\r\n\r\n\x1f";
    match refused(&says(head).await).await {
        ClientError::ContentEncoding { encoding } => assert_eq!(encoding, "gzip"),
        other => panic!("{other:?}"),
    }
    // Any of them, in one header or in several.
    for (encodings, named) in
        [("identity\r\ncontent-encoding: br", "identity, br"), ("identity, gzip", "identity, gzip")]
    {
        let head =
            format!("HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-encoding: {encodings}\r\n\r\n");
        match refused(&says(head).await).await {
            ClientError::ContentEncoding { encoding } => assert_eq!(encoding, named),
            other => panic!("{other:?}"),
        }
    }
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-encoding: Identity\r\ncontent-encoding: \r\n\r\n";
    assert_whole(&run(&says(format!("{head}{}", whole())).await).await);
}

#[tokio::test]
async fn t3_an_empty_body_is_truncated() {
    for body in ["", "\n\n"] {
        let outcome = run(&says(format!("{SSE}{body}")).await).await;
        match outcome.error {
            Some(Error::Truncated(error)) => assert_eq!(*error, Truncated::new(0, None, TruncatedBy::Close)),
            other => panic!("{other:?}"),
        }
        assert_eq!(outcome.outcome, None);
    }
}

#[tokio::test]
async fn t1a_a_body_without_an_event_is_quoted() {
    let long = format!("{{\"detail\":\"{}\"}}", "ä".repeat(5000));
    for body in [": only a comment\n\n", r#"{"error":{"message":"quota used up"}}"#, &long] {
        let outcome = run(&says(format!("{SSE}{body}")).await).await;
        let error = outcome.error.unwrap();
        assert!(error.is_truncated() && error.to_string().contains(&body[..15].replace('"', "\\\"")), "{error}");
        match source(Some(error)) {
            ClientError::NoEvents { excerpt } => {
                assert!(body.starts_with(&excerpt) && excerpt.len() >= body.len().min(4095), "{excerpt}");
            }
            other => panic!("{other:?}"),
        }
        assert_eq!(outcome.outcome, None);
    }
    // An event that was begun is truncated, as ever; so is a frame that a tolerance skips no event.
    let outcome = run(&says(format!("{SSE}data: {{\"type\":")).await).await;
    assert!(matches!(outcome.error, Some(Error::Truncated(error)) if error.by == TruncatedBy::Partial));
}

#[tokio::test]
async fn t1a_a_format_is_assumed_if_so_configured() {
    for (header, found) in [("", "without a content type"), ("content-type: text/plain\r\n", "\"text/plain\"")] {
        let answer = format!("HTTP/1.1 200 OK\r\n{header}connection: close\r\n\r\n{}", whole());
        let options = HttpOptions::new().assume_format(Format::Sse);
        let agent = agent(&says(answer).await, options);
        let items: Vec<_> = agent.items(input()).await.unwrap().try_collect().await.unwrap();
        let warning = items[0].warning().unwrap();
        assert!(warning.rule == Rule::T1a && warning.message.contains(found), "{warning}");
        assert_eq!(items.len(), 6);
    }
    let page = says("HTTP/1.1 200 OK\r\ncontent-type: text/html\r\nconnection: close\r\n\r\n<!doctype html>").await;
    let error = run_with(&page, HttpOptions::new().assume_format(Format::Sse)).await.error;
    assert!(matches!(source(error), ClientError::NoEvents { excerpt } if excerpt == "<!doctype html>"));
}

#[tokio::test]
async fn r8_closed_between_or_within_events() {
    let outcome = run(&says(format!("{SSE}{STARTED}{TEXT}")).await).await;
    assert!(matches!(outcome.error, Some(Error::Truncated(error)) if error.by == TruncatedBy::Close));
    assert_eq!(outcome.outcome.as_deref(), Some("truncated"));
    assert_eq!(outcome.text.as_deref(), Some("Zwölf Äpfel 🍎"));

    let outcome = run(&says(format!("{SSE}{STARTED}{TEXT}data: {{\"type\":\"RUN_F")).await).await;
    assert!(matches!(outcome.error, Some(Error::Truncated(error)) if error.by == TruncatedBy::Partial));
    assert_eq!(outcome.outcome.as_deref(), Some("truncated"));
    assert_eq!(outcome.text.as_deref(), Some("Zwölf Äpfel 🍎"));
}

#[tokio::test]
async fn r8_a_body_that_fails() {
    let mut bytes = CHUNKED.as_bytes().to_vec();
    bytes.extend(chunk(format!("{STARTED}{TEXT}").as_bytes()));
    for end in [&b""[..], b"40\r\ndata: ", b"no length\r\n"] {
        let outcome = run(&says([&bytes, end].concat()).await).await;
        let error = source(outcome.error);
        assert!(matches!(error, ClientError::Body(_)), "{error:?}");
        assert_eq!((error.truncated_by(), error.rule()), (Some(TruncatedBy::Body), Some(Rule::R8)));
        assert!(std::error::Error::source(&error).is_some());
        assert_eq!(outcome.outcome.as_deref(), Some("truncated"));
        assert_eq!(outcome.text.as_deref(), Some("Zwölf Äpfel 🍎"));
    }
}

#[tokio::test]
async fn r8a_a_failure_after_the_end_does_not_take_it_back() {
    let bytes = [CHUNKED.as_bytes(), &chunk(whole().as_bytes())].concat();
    let outcome = run(&says(bytes).await).await;
    let error = outcome.error.unwrap();
    assert!(!error.is_truncated() && error.rule().is_none() && error.is_transport(), "{error:?}");
    assert_eq!(error.to_string(), "the source failed: after the end of the run: the connection broke");
    match source(Some(error)) {
        ClientError::AfterRun(error) => {
            assert!(matches!(*error, ClientError::Body(_)));
            assert!(std::error::Error::source(&error).is_some());
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(outcome.outcome.as_deref(), Some("success"));
}

#[tokio::test]
async fn r8a_a_part_of_an_event_after_the_end_does_not_truncate_the_run() {
    let outcome = run(&says(format!("{SSE}{}data: {{\"type\":", whole())).await).await;
    let error = outcome.error.unwrap();
    assert!(!error.is_truncated() && error.is_transport(), "{error:?}");
    assert_eq!(error.to_string(), "the source failed: after the end of the run: the bytes ended within an event");
    assert_eq!(outcome.outcome.as_deref(), Some("success"));
}

#[tokio::test(start_paused = true)]
async fn skipped_frames_do_not_count_as_events() {
    let second = Duration::from_secs(1);
    for (first, is_over) in [(STARTED, false), (FINISHED, true)] {
        let frames = stream::iter(std::iter::repeat_n(b"data:\n\n".to_vec(), 1000)).then(async |frame| {
            tokio::time::sleep(Duration::from_millis(600)).await;
            frame
        });
        let bytes = stream::iter([first.as_bytes().to_vec()]).chain(frames).map(Ok::<_, std::io::Error>);
        let options = HttpOptions::new().tolerate_empty_data().no_event_timeout(second).after_run(second);
        let mut events = of_body(bytes).agent_events_with(options).await.unwrap();
        assert!(events.next().await.unwrap().is_ok());
        let items: Vec<_> = events.by_ref().collect().await;
        assert!(items.len() < 4, "{items:?}");
        assert_eq!(items.iter().any(Result::is_err), !is_over, "{items:?}");
    }
}

#[derive(Debug)]
struct Wrapped(AgentError);

impl std::fmt::Display for Wrapped {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("the other agent failed")
    }
}

impl std::error::Error for Wrapped {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.0)
    }
}

#[tokio::test]
async fn r8_the_error_of_an_agent_tells_what_cut_the_run_off() {
    let begun = [CHUNKED.as_bytes(), &chunk(format!("{STARTED}{TEXT}").as_bytes())].concat();
    let ended = [CHUNKED.as_bytes(), &chunk(whole().as_bytes())].concat();
    for (answer, is_truncated) in [(begun, true), (ended, false)] {
        let agent = HttpAgent::new(says(answer.clone()).await).unwrap();
        let error = agent.events(input()).await.unwrap().try_collect::<Vec<_>>().await.unwrap_err();
        let rule = is_truncated.then_some(Rule::R8);
        assert_eq!((error.is_truncated(), error.rule(), error.is_transport()), (is_truncated, rule, true));
        assert_eq!(error.to_string().contains("R8"), is_truncated, "the text says the same: {error}");
        // And through that of an agent which runs another, and of one which says why.
        let error = AgentError::from(error);
        let wrapped = AgentError::new(Wrapped(error.clone()));
        for error in [error, wrapped].map(Error::Source) {
            assert_eq!((error.is_truncated(), error.rule(), error.is_transport()), (is_truncated, rule, true));
        }
    }
}

#[tokio::test]
async fn a_failed_transport_is_distinguished_from_a_broken_rule() {
    let verdict = |error: &Error<AgentError>| (error.is_truncated(), error.rule(), error.is_transport());
    for (answer, expected) in [
        ("HTTP/1.1 503 Later\r\ncontent-length: 0\r\n\r\n".to_owned(), (false, None, true)),
        ("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n".to_owned(), (false, Some(Rule::T1a), false)),
        (format!("{SSE}{STARTED}"), (true, Some(Rule::R8), true)),
        (format!("{SSE}{STARTED}data: {{\"type\":\"RU"), (true, Some(Rule::R8), true)),
        (format!("{SSE}{FINISHED}"), (false, Some(Rule::R1), false)),
        (format!("{SSE}{STARTED}data: [DONE]\n\n"), (false, Some(Rule::E9), false)),
    ] {
        let agent = HttpAgent::new(says(answer.clone()).await).unwrap();
        let error = match agent.events(input()).await {
            Err(error) => error,
            Ok(events) => events.try_collect::<Vec<_>>().await.unwrap_err(),
        };
        assert_eq!(verdict(&error), expected, "{answer}: {error}");
        assert_eq!(verdict(&Error::Source(AgentError::from(error))), expected, "{answer}");
    }
    let mut bad = input();
    bad.state = Some(Value::Null);
    let error = HttpAgent::new("http://127.0.0.1:1/").unwrap().events(bad).await.unwrap_err();
    assert_eq!(verdict(&error), (false, Some(Rule::T4), false));
    assert_eq!(verdict(&Error::Source("anything else".into())), (false, None, true));
    let limit = Error::from(LimitExceeded::new(0, Limit::Depth, 1));
    assert_eq!(verdict(&limit), (false, None, false));
    assert_eq!(verdict(&Error::Source(AgentError::from(limit))), (false, None, false));
}

#[tokio::test]
async fn a_limit_says_whose_it_is_and_the_pipeline_has_that_of_its_agent() {
    let body = |value: String| {
        let custom = format!("data: {{\"type\":\"CUSTOM\",\"name\":\"large\",\"value\":{value}}}\n\n");
        format!("{SSE}{STARTED}{custom}{FINISHED}")
    };
    const MORE: usize = Limits::DEFAULT_MAX_EVENT_BYTES + 1000;
    let large = || body(format!("\"{}\"", "x".repeat(Limits::DEFAULT_MAX_EVENT_BYTES)));
    let limits = |limits| HttpOptions::new().read_with(Options::new().limits(limits));
    let more = || limits(Limits { max_event_bytes: MORE, ..Limits::default() });
    // More than the default.
    let events = agent(&says(large()).await, more()).events(input()).await.unwrap();
    assert_eq!(events.try_collect::<Vec<_>>().await.unwrap().len(), 3);
    let boxed: Box<dyn Agent> = Box::new(Arc::new(agent(&says(large()).await, more())));
    assert_eq!(boxed.events(input()).await.unwrap().try_collect::<Vec<_>>().await.unwrap().len(), 3);
    // And less.
    let deep = body(format!("{}{}", "[".repeat(9), "]".repeat(9)));
    let less = limits(Limits { max_depth: 8, ..Limits::default() });
    let error = agent(&says(deep).await, less).events(input()).await.unwrap().try_collect::<Vec<_>>().await;
    let error = error.unwrap_err().to_string();
    assert_eq!(error, "event 1 is nested deeper than 8 levels, the `max_depth` of the pipeline");
    // Whichever way the events come by: the source says how it is read.
    let events = agent(&says(large()).await, more()).start(input()).await.unwrap();
    assert_eq!(events.events().try_collect::<Vec<_>>().await.unwrap().len(), 3);
    let events = agent(&says(large()).await, more()).start(input()).await.unwrap();
    let stages = events.upgrade().enforce().expand().verify().assemble();
    assert_eq!(stages.try_collect::<Vec<_>>().await.unwrap().len(), 3);
    let response = reqwest::get(says(large()).await).await.unwrap();
    let events = response.agent_events_with(more()).await.unwrap().events();
    assert_eq!(events.try_collect::<Vec<_>>().await.unwrap().len(), 3);
    // A pipeline that is told otherwise keeps to that, and says so.
    let own = Options::new().limits(Limits::default());
    let events = agent(&says(large()).await, more()).events_with(input(), own).await.unwrap();
    match events.try_collect::<Vec<_>>().await.unwrap_err() {
        Error::LimitExceeded(error) => {
            assert_eq!((error.stage, error.max), (LimitStage::Pipeline, Limits::DEFAULT_MAX_EVENT_BYTES))
        }
        other => panic!("{other:?}"),
    }
}

/// A server that answers and does not close.
async fn stays_open(answer: String) -> String {
    server(async move |mut socket, _| {
        socket.write_all(answer.as_bytes()).await.unwrap();
        let _ = socket.read_u8().await;
    })
    .await
}

#[tokio::test]
async fn after_the_end_of_a_run_the_connection_is_closed_if_so_configured() {
    let ends = HttpOptions::new().after_run(Duration::ZERO);
    assert_whole(&run_with(&stays_open(format!("{SSE}{}", whole())).await, ends.clone()).await);
    // Not before it.
    let short = Duration::from_millis(50);
    let begun = run_with(&stays_open(format!("{SSE}{STARTED}")).await, ends.no_bytes_timeout(short)).await;
    assert!(matches!(source(begun.error), ClientError::Silent(limit) if limit == short));

    // R4: events that have arrived are still given, and later ones if they are waited for.
    let late = "data: {\"type\":\"RUN_ERROR\",\"message\":\"late\"}\n\n";
    let options = HttpOptions::new().after_run(short);
    let late = run_with(&stays_open(format!("{SSE}{}{late}", whole())).await, options).await;
    assert!(late.error.is_none());
    assert_eq!(late.outcome.as_deref(), Some("error"));

    // Without it the server is waited for, and the run that ended stays ended.
    let options = HttpOptions::new().no_bytes_timeout(short);
    let quiet = run_with(&stays_open(format!("{SSE}{}", whole())).await, options).await;
    assert_eq!(quiet.outcome.as_deref(), Some("success"));
    let error = quiet.error.unwrap();
    assert!(!error.is_truncated(), "{error}");
    assert!(matches!(source(Some(error)), ClientError::AfterRun(error) if matches!(*error, ClientError::Silent(_))));

    // And by a combinator, over whatever there is.
    let events = HttpAgent::new(stays_open(format!("{SSE}{}", whole())).await).unwrap().start(input()).await.unwrap();
    assert_eq!(events.take_run().events().try_collect::<Vec<_>>().await.unwrap().len(), 5);
}

#[tokio::test]
async fn limits_longer_than_the_clock_never_fire() {
    let longest = Duration::MAX;
    let options =
        HttpOptions::new().no_bytes_timeout(longest).no_event_timeout(longest).deadline(longest).after_run(longest);
    let url = says(format!("{SSE}{}", whole())).await;
    let agent = HttpAgent::builder(&url).options(options).connect_timeout(longest).build().unwrap();
    assert_eq!(agent.events(input()).await.unwrap().try_collect::<Vec<_>>().await.unwrap().len(), 5);
}

#[tokio::test]
async fn a_head_that_trickles_times_out() {
    let short = Duration::from_millis(50);
    let url = drips("HTTP/1.1 200 OK\r\nx: ".to_owned(), b"x", Duration::from_millis(1)).await;
    let error = agent(&url, HttpOptions::new().no_bytes_timeout(short)).start(input()).await.unwrap_err();
    assert!(matches!(error, ClientError::NoHead(limit) if limit == short), "{error:?}");
    assert_eq!(error.to_string(), "the head of an answer was not complete after 50ms");
}

/// An answer with this body, without a network.
fn of_body(body: impl Stream<Item = std::io::Result<Vec<u8>>> + Send + 'static) -> reqwest::Response {
    let response = Response::builder().header("content-type", "text/event-stream");
    response.body(reqwest::Body::wrap_stream(body)).unwrap().into()
}

#[tokio::test(start_paused = true)]
async fn a_body_that_uses_up_the_budget_of_its_task_does_not_starve_the_timers() {
    let second = Duration::from_secs(1);
    let long = HttpOptions::new().no_bytes_timeout(None).no_event_timeout(None);
    for options in [long.clone().no_bytes_timeout(second), long.clone().no_event_timeout(second), long.deadline(second)]
    {
        let mut events = of_body(greedy()).agent_events_with(options).await.unwrap();
        let error = next_after(&mut events, second).await.unwrap().unwrap_err();
        assert!(error.is_truncated(), "{error:?}");
    }
}

#[tokio::test]
async fn a_flood_of_bytes_does_not_starve_the_timers() {
    for piece in [&b": .\n\n"[..], &[b'\n'; 65536]] {
        let short = Duration::from_millis(50);
        let url = drips(format!("{SSE}{STARTED}"), piece, Duration::ZERO).await;
        let outcome = run_with(&url, HttpOptions::new().no_event_timeout(short));
        let outcome = tokio::time::timeout(Duration::from_secs(20), outcome).await.unwrap();
        assert!(matches!(source(outcome.error), ClientError::NoEvent(limit) if limit == short));
    }
}

#[tokio::test]
async fn a_line_without_end_meets_the_limit() {
    let limits = Limits { max_event_bytes: 100_000, ..Limits::default() };
    let options = HttpOptions::new().read_with(Options::new().limits(limits));
    for head in ["data: {\"type\":\"", ""] {
        let piece: &[u8] = if head.is_empty() { b"data: no blank line\n" } else { &[b'x'; 8192] };
        let url = drips(format!("{SSE}{STARTED}{head}"), piece, Duration::ZERO).await;
        let outcome = run_with(&url, options.clone()).await;
        match outcome.error {
            Some(Error::LimitExceeded(error)) => {
                assert_eq!(*error, LimitExceeded::new(1, Limit::EventBytes, 100_000).of(LimitStage::Decoder));
            }
            other => panic!("{other:?}"),
        }
    }
}

#[tokio::test]
async fn nothing_comes() {
    let short = Duration::from_millis(100);
    let options = HttpOptions::new().no_bytes_timeout(short);
    let (done, wait) = oneshot::channel::<()>();
    let url = server(async |mut socket, _| {
        socket.write_all(format!("{SSE}{STARTED}{TEXT}").as_bytes()).await.unwrap();
        let _ = wait.await;
    })
    .await;
    let outcome = run_with(&url, options.clone()).await;
    let error = source(outcome.error);
    assert!(matches!(error, ClientError::Silent(limit) if limit == short), "{error:?}");
    assert_eq!(error.truncated_by(), Some(TruncatedBy::Timeout));
    assert_eq!(outcome.outcome.as_deref(), Some("truncated"));
    drop(done);

    // No answer at all.
    let (done, wait) = oneshot::channel::<()>();
    let url = server(async |_socket, _| {
        let _ = wait.await;
    })
    .await;
    let error = agent(&url, options).start(input()).await.unwrap_err();
    assert!(matches!(error, ClientError::NoHead(_)), "{error:?}");
    drop(done);
}

#[tokio::test]
async fn bytes_drip_and_no_event_comes() {
    let every = Duration::from_millis(10);
    let options = HttpOptions::new().no_bytes_timeout(Duration::from_secs(5));
    for piece in [&b": still here\n\n"[..], b"x"] {
        let head = format!("{SSE}{STARTED}{}", if piece == b"x" { "data: " } else { "" });
        let url = drips(head.clone(), piece, every).await;
        let outcome = run_with(&url, options.clone().no_event_timeout(Duration::from_millis(150))).await;
        let error = source(outcome.error);
        assert!(matches!(error, ClientError::NoEvent(_)), "{error:?}");
        assert_eq!(error.truncated_by(), Some(TruncatedBy::Timeout));

        let url = drips(head, piece, every).await;
        let outcome = run_with(&url, options.clone().deadline(Duration::from_millis(150))).await;
        let error = source(outcome.error);
        assert!(matches!(error, ClientError::Deadline(_)), "{error:?}");
    }
}

#[tokio::test]
async fn a_slow_run_that_lives_is_not_ended() {
    let options =
        HttpOptions::new().no_bytes_timeout(Duration::from_millis(400)).no_event_timeout(Duration::from_millis(400));
    let url = server(async |mut socket, _| {
        socket.write_all(format!("{SSE}{STARTED}").as_bytes()).await.unwrap();
        for _ in 0..8 {
            tokio::time::sleep(Duration::from_millis(100)).await;
            socket.write_all(b"data: {\"type\":\"CUSTOM\",\"name\":\"tick\",\"value\":1}\n\n").await.unwrap();
        }
        socket.write_all(format!("{TEXT}{FINISHED}").as_bytes()).await.unwrap();
    })
    .await;
    assert_whole(&run_with(&url, options).await);
}

#[tokio::test]
async fn invalid_utf_8_is_malformed() {
    let bytes = [SSE.as_bytes(), STARTED.as_bytes(), b"data: {\"type\":\"STEP_STARTED\",\"stepName\":\"\xff\"}\n\n"];
    let outcome = run(&says(bytes.concat()).await).await;
    match outcome.error {
        Some(Error::Malformed(error)) => assert_eq!(error.event, 1),
        other => panic!("{other:?}"),
    }
}

/// A server that streams for ever, and says when its client has gone.
async fn endless() -> (String, oneshot::Receiver<()>) {
    let (tell, gone) = oneshot::channel();
    let url = server(async move |mut socket, _| {
        socket.write_all(format!("{SSE}{STARTED}").as_bytes()).await.unwrap();
        while socket.write_all(b": .\n\n").await.is_ok() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        let _ = tell.send(());
    })
    .await;
    (url, gone)
}

#[tokio::test]
async fn to_drop_is_to_abort() {
    let (url, gone) = endless().await;
    let agent: Arc<dyn Agent> = Arc::new(HttpAgent::new(&url).unwrap());
    let mut updates = agent.updates(input()).await.unwrap();
    assert!(updates.next().await.unwrap().is_ok());
    drop(updates);
    tokio::time::timeout(Duration::from_secs(10), gone).await.unwrap().unwrap();
}

#[tokio::test]
async fn a_handle_aborts() {
    let (url, gone) = endless().await;
    let mut events = HttpAgent::new(&url).unwrap().start(input()).await.unwrap();
    let handle = events.abort_handle();
    assert!(matches!(events.next().await, Some(Ok(RawItem::Options(_)))));
    assert!(events.next().await.unwrap().is_ok());
    let (first, ()) = tokio::join!(events.next(), async {
        tokio::time::sleep(Duration::from_millis(20)).await;
        handle.abort();
    });
    assert!(matches!(first, Some(Err(Error::Source(ClientError::Aborted)))), "{first:?}");
    assert!(events.next().await.is_none());
    // Though the stream is still there.
    tokio::time::timeout(Duration::from_secs(10), gone).await.unwrap().unwrap();

    // An agent's handle, while the answer is awaited.
    let (done, wait) = oneshot::channel::<()>();
    let url = server(async |_socket, _| {
        let _ = wait.await;
    })
    .await;
    let (agent, handle) = HttpAgent::new(&url).unwrap().abortable();
    let (result, ()) = tokio::join!(agent.updates(input()), async {
        tokio::time::sleep(Duration::from_millis(20)).await;
        handle.abort();
    });
    match result {
        Err(Error::Source(error)) => {
            assert!(matches!(error.downcast_ref(), Some(ClientError::Aborted)));
        }
        other => panic!("{other:?}"),
    }
    assert!(handle.is_aborted());
    drop(done);
}

#[tokio::test]
async fn a_response_that_is_there() {
    let url = says(format!("{SSE}{}", whole())).await;
    let response = reqwest::Client::new().post(&url).send().await.unwrap();
    let updates: Vec<_> = response.agent_events().await.unwrap().updates().try_collect().await.unwrap();
    assert_eq!(updates.last().unwrap().snapshot().run().unwrap().outcome.as_str(), "success");
}

#[tokio::test]
async fn a_tolerance_and_its_warning() {
    let body = format!("{SSE}{}data: [DONE]\n\n", whole());
    let outcome = run(&says(body.clone()).await).await;
    assert!(matches!(outcome.error, Some(Error::Malformed(_))));
    assert_eq!(outcome.outcome.as_deref(), Some("success"));

    let options = HttpOptions::new().tolerate_done();
    let events = agent(&says(body).await, options).start(input()).await.unwrap();
    let items: Vec<_> = events.try_collect().await.unwrap();
    assert!(matches!(items.last(), Some(RawItem::Warning(_))));
}

#[tokio::test]
async fn a_client_of_ones_own_and_one_connection() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/agent", listener.local_addr().unwrap());
    let (count, mut counted) = mpsc::unbounded_channel();
    tokio::spawn(async move {
        while let Ok((mut socket, _)) = listener.accept().await {
            let count = count.clone();
            tokio::spawn(async move {
                count.send(()).unwrap();
                loop {
                    read_request(&mut socket).await;
                    let mut bytes = CHUNKED.as_bytes().to_vec();
                    bytes.extend(chunk(whole().as_bytes()));
                    bytes.extend(b"0\r\n\r\n");
                    socket.write_all(&bytes).await.unwrap();
                }
            });
        }
    });
    let client = reqwest::Client::builder().user_agent("mine").build().unwrap();
    let agent = HttpAgent::builder(&url).client(client).build().unwrap();
    let begun = Instant::now();
    for _ in 0..3 {
        let events: Vec<_> = agent.events(input()).await.unwrap().try_collect().await.unwrap();
        assert_eq!(events.len(), 5);
    }
    assert!(begun.elapsed() < Duration::from_secs(20));
    assert_eq!(counted.recv().await, Some(()));
    assert!(counted.try_recv().is_err(), "the connection is kept");
}
