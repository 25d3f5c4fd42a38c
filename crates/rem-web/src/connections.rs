//! Connections, each of which has so long to ask and so long to take in an answer.

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

/// A visitor that takes longer to say what it wants is dropped.
const ASKING: Duration = Duration::from_secs(10);

/// A visitor that takes in nothing for so long is dropped.
const LISTENING: Duration = Duration::from_secs(10);

/// Serves all who come, for ever.
pub async fn serve(mut listener: TcpListener, router: Router) {
    loop {
        let (stream, _) = Listener::accept(&mut listener).await;
        let service = TowerToHyperService::new(router.clone());
        let mut http = http1::Builder::new();
        http.timer(TokioTimer::new()).header_read_timeout(ASKING);
        let io = TokioIo::new(Patient::new(stream));
        let served = http.serve_connection(io, service).with_upgrades();
        // What goes wrong with a connection is its visitor's matter.
        tokio::spawn(async { drop(served.await) });
    }
}

/// A connection that fails when nothing can be written to it for too long.
struct Patient<S> {
    stream: S,
    /// Runs out while a write waits.
    waiting: Option<Pin<Box<Sleep>>>,
}

impl<S> Patient<S> {
    fn new(stream: S) -> Self {
        Self {
            stream,
            waiting: None,
        }
    }

    fn in_time<T>(
        &mut self,
        context: &mut Context,
        written: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if written.is_ready() {
            self.waiting = None;
            return written;
        }
        let waiting = &mut self.waiting;
        let waiting = waiting.get_or_insert_with(|| Box::pin(tokio::time::sleep(LISTENING)));
        let late = || Err(io::ErrorKind::TimedOut.into());
        waiting.as_mut().poll(context).map(|()| late())
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Patient<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context,
        buffer: &mut ReadBuf,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Patient<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.in_time(context, written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context,
        parts: &[IoSlice],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, parts);
        self.in_time(context, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.stream).poll_flush(context);
        self.in_time(context, flushed)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context) -> Poll<io::Result<()>> {
        let closed = Pin::new(&mut self.stream).poll_shutdown(context);
        self.in_time(context, closed)
    }
}
