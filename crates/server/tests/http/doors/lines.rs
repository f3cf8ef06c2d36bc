//! A door without HTTP: a program writes lines that consist of a key, a line id and a text, and reads one reply per line.

use std::sync::Arc;

use threadkeep::TurnRequest;
use threadkeep_server::{Door, KeyRole};
use threadkeep_service::turns::{self, AskRequest, TurnTask};
use threadkeep_service::{Error, ErrorKind, RequestIdentity, Service};
use tokio::sync::{Mutex, mpsc, oneshot};

/// A line, and the channel for the reply.
type Line = (String, oneshot::Sender<String>);

/// The program's end of the connection.
#[derive(Clone)]
pub(super) struct Console(mpsc::UnboundedSender<Line>);

impl Console {
    pub(super) async fn send_line(&self, line: &str) -> String {
        let (sender, answer) = oneshot::channel();
        self.0.send((line.to_owned(), sender)).unwrap();
        tokio::time::timeout(crate::server::TIMEOUT, answer).await.unwrap().unwrap()
    }
}

pub(super) fn lines_door() -> (Door, Console) {
    let (sender, lines) = mpsc::unbounded_channel();
    let lines = Arc::new(Mutex::new(lines));
    (Door::new("lines").background_task(move |service| serve_lines(service, Arc::clone(&lines))), Console(sender))
}

async fn serve_lines(service: Service, lines: Arc<Mutex<mpsc::UnboundedReceiver<Line>>>) {
    let mut lines = lines.lock().await;
    loop {
        let (line, sender) = tokio::select! {
            () = service.stopped() => return,
            line = lines.recv() => match line {
                Some(line) => line,
                None => return service.stopped().await,
            },
        };
        let (service, hold) = (service.clone(), service.delay_shutdown());
        tokio::spawn(async move {
            let reply = process_line(&service, &line).await.unwrap_or_else(|error| format!("error {}", error.code));
            drop(sender.send(reply));
            drop(hold);
        });
    }
}

async fn process_line(service: &Service, line: &str) -> Result<String, Error> {
    let mut parts = line.splitn(3, ' ').map(str::to_owned);
    let (Some(key), Some(name), Some(text)) = (parts.next(), parts.next(), parts.next()) else {
        return Err(Error::invalid("line", "a line must consist of a key, an id and a text"));
    };
    let unknown = || Error::new(ErrorKind::Unauthenticated, "invalid_key", "no such key");
    let caller = service.authenticate(&key, || Ok(None)).await?.ok_or_else(unknown)?;
    caller.require(KeyRole::Write)?;
    let thread = service.memory().open_by_key(&caller.scope, "lines").await?.thread.id;
    let agent = service.assistants().find("keeper").ok_or_else(|| Error::not_found("assistant"))?;
    let (identity, ask) = (RequestIdentity::new("lines", Some(name), &text, 0), TurnRequest::new(text));
    let request =
        AskRequest { service: service.clone(), agent, scope: caller.scope, thread, ask, identity, is_ephemeral: false };
    let answered = turns::wait_for_result(turns::start(service.delay_shutdown(), TurnTask::Ask(request))).await?;
    let suffix = if answered.replayed { " (again)" } else { "" };
    Ok(format!("{}{suffix}", answered.turn.reply))
}
