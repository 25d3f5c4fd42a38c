//! The accept loop, with timeouts for clients that do not send or do not read.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::Router;
use axum::serve::Listener;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpListener;
use tokio::time::Sleep;

/// A client that takes longer to send its request headers is disconnected.
const HEADER_READ_TIMEOUT: Duration = Duration::from_secs(10);

/// A client that reads nothing for this long is disconnected.
const WRITE_TIMEOUT: Duration = Duration::from_secs(10);

/// Accepts and serves connections forever.
pub(crate) async fn serve(mut listener: TcpListener, router: Router) {
    loop {
        let (stream, _) = Listener::accept(&mut listener).await;
        let service = TowerToHyperService::new(router.clone());
        let mut http = http1::Builder::new();
        http.timer(TokioTimer::new())
            .header_read_timeout(HEADER_READ_TIMEOUT);
        let io = TokioIo::new(WriteTimeout::new(stream));
        let connection = http.serve_connection(io, service).with_upgrades();
        // A failed connection concerns only its client.
        tokio::spawn(async { drop(connection.await) });
    }
}

/// A stream whose writes fail with `TimedOut` after [`WRITE_TIMEOUT`] without progress.
struct WriteTimeout<S> {
    stream: S,
    /// Runs while a write is pending.
    timer: Option<Pin<Box<Sleep>>>,
}

impl<S> WriteTimeout<S> {
    fn new(stream: S) -> Self {
        Self {
            stream,
            timer: None,
        }
    }

    fn with_timeout<T>(
        &mut self,
        context: &mut Context,
        written: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if written.is_ready() {
            self.timer = None;
            return written;
        }
        let timer = &mut self.timer;
        let timer = timer.get_or_insert_with(|| Box::pin(tokio::time::sleep(WRITE_TIMEOUT)));
        let timed_out = || Err(io::ErrorKind::TimedOut.into());
        timer.as_mut().poll(context).map(|()| timed_out())
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for WriteTimeout<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context,
        buffer: &mut ReadBuf,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for WriteTimeout<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.with_timeout(context, written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context,
        parts: &[IoSlice],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, parts);
        self.with_timeout(context, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.stream).poll_flush(context);
        self.with_timeout(context, flushed)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context) -> Poll<io::Result<()>> {
        let closed = Pin::new(&mut self.stream).poll_shutdown(context);
        self.with_timeout(context, closed)
    }
}
