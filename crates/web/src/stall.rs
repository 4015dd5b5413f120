//! A connection whose writes may stall only for so long: a client that asks and never reads would hold its
//! place for ever.

use std::future::Future as _;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep};

/// A connection with a bound on stalled writes. Reads are bounded by those who wait for them.
pub(crate) struct Bounded<I> {
    io: I,
    within: Duration,
    /// Set while a write waits for the other side.
    end: Option<Pin<Box<Sleep>>>,
}

impl<I> Bounded<I> {
    pub(crate) const fn new(io: I, within: Duration) -> Self {
        Self { io, within, end: None }
    }

    /// What a write came to; a stalled one becomes an error when its time is over.
    fn progress<T>(
        &mut self,
        context: &mut Context<'_>,
        written: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if written.is_ready() {
            self.end = None;
            return written;
        }
        let within = self.within;
        let end = self.end.get_or_insert_with(|| Box::pin(tokio::time::sleep_until(Instant::now() + within)));
        ready!(end.as_mut().poll(context));
        Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, "the client does not read its answer")))
    }
}

impl<I: AsyncRead + Unpin> AsyncRead for Bounded<I> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_read(context, buffer)
    }
}

impl<I: AsyncWrite + Unpin> AsyncWrite for Bounded<I> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.io).poll_write(context, bytes);
        self.progress(context, written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffers: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.io).poll_write_vectored(context, buffers);
        self.progress(context, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.io).poll_flush(context);
        self.progress(context, flushed)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let closed = Pin::new(&mut self.io).poll_shutdown(context);
        self.progress(context, closed)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncWriteExt as _;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_client_that_does_not_read_is_cut_and_a_slow_one_is_not() {
        let (ours, mut theirs) = tokio::io::duplex(8);
        let mut bounded = Bounded::new(ours, Duration::from_secs(30));
        let reading = tokio::spawn(async move {
            let mut got = Vec::new();
            for _ in 0..4 {
                tokio::time::sleep(Duration::from_secs(20)).await;
                let mut some = [0; 8];
                got.push(tokio::io::AsyncReadExt::read(&mut theirs, &mut some).await.expect("read"));
            }
            theirs
        });
        bounded.write_all(&[0; 40]).await.expect("slow, but it goes on");
        let _unread = reading.await.expect("no panic");
        let cut = bounded.write_all(&[0; 40]).await.expect_err("nobody reads");
        assert_eq!(cut.kind(), io::ErrorKind::TimedOut);
    }
}
