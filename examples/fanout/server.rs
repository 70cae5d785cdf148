//! Starts a Redis server for the tests and the benchmark.

use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use std::{io, thread};

use tempfile::TempDir;

/// A `redis-server` on loopback, on a free port, which writes its log to the disk before it confirms an append.
#[derive(Debug)]
pub struct Server {
    folder: TempDir,
    port: u16,
    process: Option<Child>,
}

impl Server {
    /// Starts a server.
    ///
    /// # Errors
    /// If there is no `redis-server`, or if it does not start.
    pub fn start() -> io::Result<Self> {
        // The port is free now, and is unlikely to be taken soon.
        let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port();
        let mut server = Self { folder: TempDir::new()?, port, process: None };
        server.start_again()?;
        Ok(server)
    }

    /// The address of the server.
    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    /// Kills the server, as a power cut would.
    pub fn kill(&mut self) {
        if let Some(mut process) = self.process.take() {
            let _ = process.kill();
            let _ = process.wait();
        }
    }

    /// Starts the server again, with the log that it had written.
    ///
    /// # Errors
    /// As [`start`](Self::start).
    pub fn start_again(&mut self) -> io::Result<()> {
        self.kill();
        let options = [
            ("--bind", "127.0.0.1"),
            ("--port", &self.port.to_string()),
            ("--appendonly", "yes"),
            // With `everysec`, confirmed entries of one second may be lost; viewers would then get `Gone`.
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
