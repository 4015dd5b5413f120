//! One keep-alive connection: send a request, wait for its answer.

use std::io;
use std::net::SocketAddr;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::response::{self, Response};

/// Room for a usual answer, so that one read gets it all.
const BUFFER: usize = 16 * 1024;

/// An open connection and what was read from it last.
pub(crate) struct Connection {
    stream: TcpStream,
    read: Vec<u8>,
}

impl Connection {
    /// # Errors
    /// Nobody listens at the address.
    pub(crate) async fn open(to: SocketAddr) -> io::Result<Connection> {
        let stream = TcpStream::connect(to).await?;
        stream.set_nodelay(true)?;
        Ok(Connection { stream, read: Vec::with_capacity(BUFFER) })
    }

    /// Sends a request and returns the status and body of its answer.
    ///
    /// # Errors
    /// The connection ended early or the answer can't be read; the connection
    /// is of no further use.
    pub(crate) async fn exchange(&mut self, request: &[u8]) -> io::Result<(u16, &[u8])> {
        self.read.clear();
        self.stream.write_all(request).await?;
        let Response { status, body } = loop {
            if self.stream.read_buf(&mut self.read).await? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            let found = response::parse(&self.read);
            if let Some(found) = found.map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))? {
                break found;
            }
        };
        Ok((status, self.read.get(body).unwrap_or_default()))
    }
}
