//! A connection to Redis that outlives a restart of the broker.

use std::sync::Arc;
use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Client, Pipeline, RedisError, RedisResult, RetryMethod, Value};
use tokio::sync::Mutex;
use tokio::time::{Instant, sleep};

/// How long an answer may take, on top of the time that the command itself waits.
const ANSWER: Duration = Duration::from_secs(5);
/// The longest pause between two attempts.
const PAUSE: Duration = Duration::from_millis(500);

/// A broker, and how long to wait if it is unreachable. A clone shares the connection.
#[derive(Clone, Debug)]
pub struct Broker {
    client: Client,
    patience: Duration,
    wait: Duration,
    link: Arc<Mutex<Link>>,
}

#[derive(Default)]
struct Link {
    connection: Option<MultiplexedConnection>,
    /// How many connections there have been.
    count: u64,
}

impl std::fmt::Debug for Link {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Link").field("is_open", &self.connection.is_some()).field("count", &self.count).finish()
    }
}

impl Broker {
    /// A broker at `redis://host:port`. A command is tried again for as long as `patience`.
    ///
    /// # Errors
    /// If the address is invalid. This does not connect yet.
    pub fn new(url: &str, patience: Duration) -> RedisResult<Self> {
        let client = Client::open(url)?;
        Ok(Self { client, patience, wait: Duration::ZERO, link: Arc::default() })
    }

    /// The same broker over a connection of its own, for commands that wait for this long: other commands
    /// on the same connection would have to wait too.
    pub fn apart(&self, wait: Duration) -> Self {
        Self { client: self.client.clone(), patience: self.patience, wait, link: Arc::default() }
    }

    /// How many connections there have been. If the number grows, the broker was unreachable.
    pub async fn connections(&self) -> u64 {
        self.link.lock().await.count
    }

    /// Sends each command at least once, and gives the answer to each, which may be an error of the broker.
    /// So a command must be one that may run twice.
    ///
    /// # Errors
    /// If the broker was unreachable for longer than `patience`, or refuses the connection.
    pub async fn ask(&self, commands: &Pipeline) -> RedisResult<Vec<RedisResult<Value>>> {
        let give_up = Instant::now() + self.patience;
        let mut pause = Duration::from_millis(10);
        loop {
            match self.attempt(commands).await {
                Err(error) if !may_pass(&error) || Instant::now() + pause > give_up => return Err(error),
                Err(_) => sleep(pause).await,
                Ok(answers) => return Ok(answers),
            }
            pause = PAUSE.min(pause * 2);
        }
    }

    async fn attempt(&self, commands: &Pipeline) -> RedisResult<Vec<RedisResult<Value>>> {
        let (mut connection, count) = self.connect().await?;
        let answers: RedisResult<Vec<RedisResult<Value>>> = commands.query_async(&mut connection).await;
        match answers {
            // For example LOADING, while the broker reads its log after a start.
            Ok(mut answers) => match answers.iter().position(|answer| answer.as_ref().is_err_and(may_pass)) {
                Some(at) => Err(answers.swap_remove(at).err().unwrap_or_else(|| RedisError::from(away()))),
                None => Ok(answers),
            },
            Err(error) => {
                let mut link = self.link.lock().await;
                if link.count == count {
                    link.connection = None;
                }
                Err(error)
            }
        }
    }

    async fn connect(&self) -> RedisResult<(MultiplexedConnection, u64)> {
        let mut link = self.link.lock().await;
        if link.connection.is_none() {
            let config = AsyncConnectionConfig::new()
                .set_connection_timeout(Some(ANSWER))
                .set_response_timeout(Some(self.wait + ANSWER));
            link.connection = Some(self.client.get_multiplexed_async_connection_with_config(&config).await?);
            link.count += 1;
        }
        let count = link.count;
        link.connection.clone().map(|connection| (connection, count)).ok_or_else(|| away().into())
    }
}

fn away() -> std::io::Error {
    std::io::ErrorKind::NotConnected.into()
}

/// Whether a later attempt may succeed.
fn may_pass(error: &RedisError) -> bool {
    !matches!(error.retry_method(), RetryMethod::NoRetry)
}

/// An empty list of commands. An error of the broker is the answer to its command, not a failure of all.
pub fn commands() -> Pipeline {
    let mut commands = redis::pipe();
    commands.ignore_errors();
    commands
}

/// The answer to the only command, or the first error of several.
///
/// # Errors
/// The error that the broker answered.
pub fn answer(answers: Vec<RedisResult<Value>>) -> RedisResult<Value> {
    let mut answers = answers.into_iter().collect::<RedisResult<Vec<_>>>()?;
    Ok(answers.pop().unwrap_or(Value::Nil))
}
