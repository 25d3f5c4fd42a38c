//! `rem watch`: serves a local web page that shows runs while they train.

use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::path::PathBuf;

use crate::print;
use anyhow::Result;
use clap::Args;
use rem::Error;
use rem::threads;
use rem_web::{Options, Token};

use crate::args;

/// Watch runs in the browser, live while they train
///
/// Prints the address of a page that shows every run in the given directories: returns against random, human and
/// published scores, all losses and gradient norms, the time per phase and the estimated end, active codes,
/// reconstructions over the epochs, dreams next to reality, episodes with values and policy, config, protocol and log.
/// Runs can be compared side by side. The page includes the console of `rem play`.
///
/// `rem watch` only reads runs. Anything that needs the agent is computed on request from the last checkpoint, on one
/// thread and at low priority by default, so that training on the same machine does not slow down.
#[derive(Args)]
#[command(after_long_help = "\
Examples:
  rem watch                            all runs in ./runs
  rem watch runs/catch-seed1           one run
  rem watch runs elsewhere/pong        a directory of runs and a run
  rem watch --host 0.0.0.0             reachable from other machines; the address then includes a token

The page makes no requests to other hosts and rejects requests from other origins.")]
pub struct WatchArgs {
    /// Run directories, or directories that contain runs
    #[arg(value_name = "RUN|DIR", default_value = DEFAULT_DIR)]
    paths: Vec<PathBuf>,
    #[command(flatten)]
    serve: ServeArgs,
    /// CPU threads for requests that need the agent; 0 means one per core
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = args::threads)]
    threads: usize,
}

/// Options of the web server.
#[derive(Args)]
pub struct ServeArgs {
    /// Address to listen on; any other than a loopback address requires a token
    #[arg(long, value_name = "IP", default_value_t = IpAddr::V4(Ipv4Addr::LOCALHOST))]
    host: IpAddr,
    /// Port to listen on; 0 picks a free one
    #[arg(long, value_name = "N", default_value_t = 7357, value_parser = args::whole::<u16>(0..=65_535))]
    port: u16,
    /// Access token [default: none on a loopback address, else random]
    #[arg(long, value_name = "TOKEN", value_parser = Token::new)]
    token: Option<Token>,
}

/// Where `rem train` creates runs.
const DEFAULT_DIR: &str = "runs";

pub fn run(args: WatchArgs) -> Result<()> {
    for path in &args.paths {
        // The page says what to type as long as there is no run, and shows the first one when it starts.
        if !path.is_dir() && path.as_os_str() == DEFAULT_DIR {
            print::message(format_args!(
                "no runs in `{DEFAULT_DIR}` yet: `rem train` starts one"
            ));
        } else if !path.is_dir() {
            return Err(Error::Run {
                path: path.clone(),
                reason: "no such directory".into(),
                hint: "pass a run or a directory of runs; `rem train` creates runs in `runs/`"
                    .into(),
            }
            .into());
        }
    }
    lower_priority();
    threads::set(args.threads)?;
    args.serve.run(args.paths, "")
}

/// Lowers the priority of this process, so that training on the same machine comes first. Threads inherit it, so call
/// this before any are started.
fn lower_priority() {
    // Not essential: ignore failure.
    #[cfg(unix)]
    let _ = rustix::process::nice(10);
}

/// The address to open in a browser. Replaces an unspecified address (0.0.0.0) by one of this machine.
fn reachable(address: SocketAddr) -> SocketAddr {
    if !address.ip().is_unspecified() {
        return address;
    }
    // The source address of an outbound packet; connecting a UDP socket sends none.
    let (any, remote) = match address {
        SocketAddr::V4(_) => ("0.0.0.0:0", "192.0.2.1:9"),
        SocketAddr::V6(_) => ("[::]:0", "[2001:db8::1]:9"),
    };
    let source = || {
        let socket = UdpSocket::bind(any)?;
        socket.connect(remote)?;
        socket.local_addr()
    };
    let ip = source().map_or(IpAddr::V4(Ipv4Addr::LOCALHOST), |source| source.ip());
    SocketAddr::new(ip, address.port())
}

impl ServeArgs {
    /// Serves until Ctrl-C or SIGTERM. `fragment` is appended to the printed address.
    pub fn run(self, paths: Vec<PathBuf>, fragment: &str) -> Result<()> {
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
            let page = format!("http://{}/{token}{fragment}", reachable(address));
            // It serves all the same when nobody reads this.
            let _ = print::line(page);
            print::message("open this address in a browser; press Ctrl-C to stop");
        });
        Ok(served.map_err(|error| Error::Device {
            message: format!("cannot serve on {address}: {error}"),
            hint: "`--port 0` picks a free port".into(),
        })?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn printed_address_is_reachable() {
        let named: SocketAddr = "127.0.0.1:7357".parse().unwrap();
        assert_eq!(reachable(named), named);
        for any in ["0.0.0.0:7357", "[::]:7357"] {
            let shown = reachable(any.parse().unwrap());
            assert!(!shown.ip().is_unspecified() && shown.port() == 7357);
        }
    }
}
