//! A server that plays Telegram: it keeps the texts it is sent and says that they went out. Not here: any
//! other method or answer of the service.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::bail;

/// A running stand-in.
pub(super) struct Telegram {
    heard: Arc<Heard>,
    accepting: Option<JoinHandle<()>>,
    /// Where it listens.
    pub(super) address: SocketAddr,
}

#[derive(Default)]
struct Heard {
    texts: Mutex<Vec<String>>,
    more: Condvar,
    closing: AtomicBool,
}

impl Telegram {
    /// Listens on a free port.
    ///
    /// # Errors
    /// None is free.
    pub(super) fn start() -> std::io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let address = listener.local_addr()?;
        let heard = Arc::new(Heard::default());
        let theirs = Arc::clone(&heard);
        let accepting = Some(std::thread::spawn(move || accept(&listener, &theirs)));
        Ok(Self { heard, accepting, address })
    }

    /// Waits until it has heard `count` messages, at most `limit`; gives how many there are.
    pub(super) fn wait(&self, count: usize, limit: Duration) -> usize {
        let texts = self.heard.texts.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self.heard.more.wait_timeout_while(texts, limit, |texts| texts.len() < count);
        waited.unwrap_or_else(PoisonError::into_inner).0.len()
    }

    /// All bodies that arrived whole, in order. Only once its client is dead: waits for the ends of all
    /// connections.
    ///
    /// # Errors
    /// A connection's thread panicked.
    pub(super) fn settle(mut self) -> anyhow::Result<Vec<String>> {
        self.close();
        if let Some(accepting) = self.accepting.take()
            && accepting.join().is_err()
        {
            bail!("the stand-in for Telegram panicked");
        }
        Ok(std::mem::take(&mut *self.heard.texts.lock().unwrap_or_else(PoisonError::into_inner)))
    }

    /// A connection of our own comes after all others in the queue and wakes the accepting thread.
    fn close(&self) {
        self.heard.closing.store(true, Ordering::SeqCst);
        // Refused means that nobody accepts any more.
        let _ = TcpStream::connect(self.address);
    }
}

impl Drop for Telegram {
    fn drop(&mut self) {
        if self.accepting.is_some() {
            self.close();
        }
    }
}

fn accept(listener: &TcpListener, heard: &Arc<Heard>) {
    let mut clients = Vec::new();
    for stream in listener.incoming().map_while(Result::ok) {
        let closing = heard.closing.load(Ordering::SeqCst);
        let heard = Arc::clone(heard);
        // A dead client's last connection may come after the flag: it is served, too.
        clients.push(std::thread::spawn(move || serve(&stream, &heard)));
        if closing {
            break;
        }
    }
    for client in clients {
        // It only reads and answers; a panic would show as a message that is missing.
        let _ = client.join();
    }
}

/// Serves one connection to its end; a request that is cut counts as not arrived.
fn serve(stream: &TcpStream, heard: &Heard) {
    let mut reader = BufReader::new(stream);
    let mut writer = stream;
    while let Some(body) = request(&mut reader) {
        let mut texts = heard.texts.lock().unwrap_or_else(PoisonError::into_inner);
        texts.push(body);
        let id = texts.len();
        drop(texts);
        heard.more.notify_all();
        let text = format!(r#"{{"ok":true,"result":{{"message_id":{id},"date":1767225600,"text":"x"}}}}"#);
        let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n";
        let answer = format!("{head}content-length: {}\r\n\r\n{text}", text.len());
        if writer.write_all(answer.as_bytes()).is_err() {
            return;
        }
    }
}

/// The body of the next request; `None` at the end of the connection.
fn request(reader: &mut BufReader<&TcpStream>) -> Option<String> {
    let mut length = 0;
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).ok()? == 0 {
            return None;
        }
        let line = line.trim_end();
        if line.is_empty() {
            break;
        }
        if let Some((name, value)) = line.split_once(':')
            && name.eq_ignore_ascii_case("content-length")
        {
            length = value.trim().parse().ok()?;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    String::from_utf8(body).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn say(to: SocketAddr, bytes: &str) -> TcpStream {
        let mut stream = TcpStream::connect(to).unwrap();
        stream.write_all(bytes.as_bytes()).unwrap();
        stream
    }

    #[test]
    fn whole_messages_count_and_cut_ones_do_not() {
        let telegram = Telegram::start().unwrap();
        let head = "POST /botx/sendMessage HTTP/1.1\r\nContent-Length: 5\r\n\r\n";
        let mut whole = say(telegram.address, &format!("{head}hello"));
        assert_eq!(telegram.wait(1, Duration::from_secs(20)), 1);
        let mut answer = [0; 12];
        whole.read_exact(&mut answer).unwrap();
        assert_eq!(&answer, b"HTTP/1.1 200");
        drop(whole);
        drop(say(telegram.address, &format!("{head}he")));
        assert_eq!(telegram.settle().unwrap(), ["hello"]);
    }
}
