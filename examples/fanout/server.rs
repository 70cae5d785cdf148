//! A Redis server of our own, for the tests and the benchmark.

use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use std::{io, thread};

use tempfile::TempDir;

/// A `redis-server` on loopback, on a port of its own, whose log is written out before an append is
/// confirmed.
#[derive(Debug)]
pub struct Server {
    folder: TempDir,
    port: u16,
    process: Option<Child>,
}

impl Server {
    /// Starts one.
    ///
    /// # Errors
    /// Where there is no `redis-server`, or it does not come up.
    pub fn start() -> io::Result<Self> {
        // Free now; nobody else should want it soon.
        let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port();
        let mut server = Self { folder: TempDir::new()?, port, process: None };
        server.start_again()?;
        Ok(server)
    }

    /// Its address.
    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    /// Kills it, as a power cut would.
    pub fn kill(&mut self) {
        if let Some(mut process) = self.process.take() {
            let _ = process.kill();
            let _ = process.wait();
        }
    }

    /// Starts it again, with what it had written.
    ///
    /// # Errors
    /// As [`start`](Self::start).
    pub fn start_again(&mut self) -> io::Result<()> {
        self.kill();
        let options = [
            ("--bind", "127.0.0.1"),
            ("--port", &self.port.to_string()),
            ("--appendonly", "yes"),
            // A second of what was confirmed may be lost with `everysec`, which would be told as `Gone`.
            ("--appendfsync", "always"),
            ("--save", ""),
        ];
        let mut command = Command::new("redis-server");
        command.args(options.iter().flat_map(|(name, value)| [name, value])).arg("--dir").arg(self.folder.path());
        self.process = Some(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn()?);
        let give_up = Instant::now() + Duration::from_secs(20);
        while TcpStream::connect((Ipv4Addr::LOCALHOST, self.port)).is_err() {
            if Instant::now() > give_up {
                return Err(io::ErrorKind::TimedOut.into());
            }
            thread::sleep(Duration::from_millis(10));
        }
        Ok(())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill();
    }
}
