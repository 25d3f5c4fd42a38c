//! `rem watch`: a local web page that shows runs while they train.

use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::path::PathBuf;

use anyhow::Result;
use clap::Args;
use rem::error::Error;
use rem::threads;
use rem_web::{Options, Token};

/// Watch runs in the browser: curves, reconstructions, dreams beside reality, episodes; live while they train
///
/// Prints an address of this machine to open. The page shows every run in the folders that you name: returns with the
/// random, human and published scores as lines, every loss and gradient norm, the time of each phase and the projected
/// end, which codes are alive, frames beside reconstructions through the epochs, the dream beside reality, episodes to
/// scrub through with values and policy, config, protocol and log; and several runs side by side. It also has the
/// console of `rem play`.
///
/// Runs are only read. What needs the agent is computed from its last checkpoint when you look at it, on one thread
/// unless you allow more, so that a training on the same machine goes on at its speed.
#[derive(Args)]
#[command(after_long_help = "\
Examples:
  rem watch                            all runs in ./runs
  rem watch runs/catch-seed1           one run
  rem watch runs elsewhere/pong        a folder and a run
  rem watch --host 0.0.0.0             for other machines too; the address then has a token in it

The page loads nothing from anywhere else, and other pages cannot ask for it.")]
pub struct WatchArgs {
    /// Runs, and folders with runs in them
    #[arg(value_name = "RUN|DIR", default_value = "runs")]
    paths: Vec<PathBuf>,
    #[command(flatten)]
    place: ServeArgs,
    /// CPU threads for what needs the agent; 0 is one per core
    #[arg(long, value_name = "N", default_value_t = 1)]
    threads: usize,
}

/// Where the page is served.
#[derive(Args)]
pub struct ServeArgs {
    /// Address to serve on; on another one than this machine's own a token is asked for
    #[arg(long, value_name = "IP", default_value_t = IpAddr::V4(Ipv4Addr::LOCALHOST))]
    host: IpAddr,
    /// Port to serve on; 0 is any that is free
    #[arg(long, value_name = "N", default_value_t = 7357)]
    port: u16,
    /// Token that visitors must know [default: a new one for other addresses, none for this machine's own]
    #[arg(long, value_name = "TOKEN", value_parser = Token::new)]
    token: Option<Token>,
}

pub fn run(args: WatchArgs) -> Result<()> {
    for path in &args.paths {
        if !path.is_dir() {
            return Err(Error::Run {
                path: path.clone(),
                reason: "there is no such directory".into(),
                hint: "name a run or a folder with runs; `rem train` makes one in `runs/`".into(),
            }
            .into());
        }
    }
    yield_to_training();
    threads::set(args.threads)?;
    args.place.serve(args.paths, "")
}

/// Lowers the priority of this process, so that a training on the same machine comes first. To be called before there
/// are other threads, which inherit it.
fn yield_to_training() {
    // A watcher that may not be nicer still watches.
    #[cfg(unix)]
    let _ = rustix::process::nice(10);
}

/// The address under which the page can be opened: one that stands for all addresses of the machine is none itself.
fn to_open(address: SocketAddr) -> SocketAddr {
    if !address.ip().is_unspecified() {
        return address;
    }
    // Where a packet to elsewhere would come from; none is sent.
    let (any, elsewhere) = match address {
        SocketAddr::V4(_) => ("0.0.0.0:0", "192.0.2.1:9"),
        SocketAddr::V6(_) => ("[::]:0", "[2001:db8::1]:9"),
    };
    let outward = || {
        let socket = UdpSocket::bind(any)?;
        socket.connect(elsewhere)?;
        socket.local_addr()
    };
    let ip = outward().map_or(IpAddr::V4(Ipv4Addr::LOCALHOST), |outward| outward.ip());
    SocketAddr::new(ip, address.port())
}

impl ServeArgs {
    /// Serves until Ctrl-C; `page` is the part of the address behind the `#`.
    pub fn serve(self, paths: Vec<PathBuf>, page: &str) -> Result<()> {
        let address = SocketAddr::new(self.host, self.port);
        let token = match self.token {
            None if !self.host.is_loopback() => Some(Token::generate()),
            token => token,
        };
        let options = Options {
            paths,
            address,
            token: token.clone(),
        };
        let served = rem_web::serve(options, |address| {
            let token =
                token.map_or_else(String::new, |token| format!("?token={}", token.as_str()));
            println!("http://{}/{token}{page}", to_open(address));
            eprintln!("open this address in a browser; Ctrl-C ends");
        });
        Ok(served.map_err(|error| Error::Device {
            message: format!("cannot serve on {address}: {error}"),
            hint: "`--port 0` takes any port that is free".into(),
        })?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_printed_can_be_opened() {
        let named: SocketAddr = "127.0.0.1:7357".parse().unwrap();
        assert_eq!(to_open(named), named);
        for any in ["0.0.0.0:7357", "[::]:7357"] {
            let shown = to_open(any.parse().unwrap());
            assert!(!shown.ip().is_unspecified() && shown.port() == 7357);
        }
    }
}
