//! Commands print the same on PostgreSQL as on a file.

use serde_json::Value;
use threadkeep_postgres_server::{Database, Server};
use tokio::runtime::Runtime;

use super::Cli;
use super::serve::{self, append_until_down, assert_stored};

const NOW: [&str; 2] = ["--now", "2026-06-01T10:00:00Z"];

/// The program, with its own database.
struct PostgresCli {
    cli: Cli,
    database: Database,
    runtime: Runtime,
}

impl PostgresCli {
    fn new() -> Option<Self> {
        let server = Server::shared()?;
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let database = runtime.block_on(server.create_database());
        let cli = Cli { url: Some(database.url()), ..Cli::new() };
        Some(Self { cli, database, runtime })
    }

    fn run_sql(&self, sql: &str) {
        self.runtime.block_on(async {
            let (client, connection) =
                tokio_postgres::connect(&self.database.url(), tokio_postgres::NoTls).await.unwrap();
            tokio::spawn(connection);
            client.batch_execute(sql).await.unwrap();
        });
    }
}

/// Runs a test with its own database, if a server is available.
pub(super) fn with_postgres(run: impl Fn(&Cli)) {
    if let Some(on_server) = PostgresCli::new() {
        run(&on_server.cli);
    }
}

/// Runs a test with its own database, if a server is available, and a function that returns the columns that contain the given text.
pub(super) fn with_postgres_columns(run: impl Fn(&Cli, &dyn Fn(&str) -> Vec<String>)) {
    if let Some(on_server) = PostgresCli::new() {
        let columns_with = |text: &str| on_server.runtime.block_on(on_server.database.columns_with(text)).unwrap();
        run(&on_server.cli, &columns_with);
    }
}

/// Replaces the ids, which differ between runs.
fn without_ids(text: &str) -> String {
    let is_id = |word: &[u8]| {
        let dashes = [8, 13, 18, 23];
        let fits = |(index, byte): (usize, &u8)| {
            if dashes.contains(&index) { *byte == b'-' } else { byte.is_ascii_hexdigit() }
        };
        word.iter().enumerate().all(fits)
    };
    let (mut shown, mut rest) = (String::new(), text);
    while let Some(first) = rest.chars().next() {
        // A complete id, or a short one as lists print it.
        let id = [36, 18].into_iter().find(|length| rest.as_bytes().get(..*length).is_some_and(is_id));
        shown.push_str(id.map_or(&rest[..first.len_utf8()], |_| "[id]"));
        rest = &rest[id.unwrap_or(first.len_utf8())..];
    }
    shown
}

fn without_folder(cli: &Cli, text: &str) -> String {
    text.replace(&cli.path("").display().to_string(), "[folder]/")
}

/// Returns the output of a command without ids, the folder, and the time of the last change, because the stores are filled
/// at different times.
fn comparable_output(cli: &Cli, arguments: &[&str]) -> (Option<i32>, String, String) {
    let output = cli.run(arguments);
    let mut out = without_folder(cli, &without_ids(&output.out));
    for (start, end) in [(r#""updated_at":""#, '"'), (" · updated ", '\n')] {
        if let Some((before, after)) = out.split_once(start) {
            out = format!("{before}{}", after.split_once(end).unwrap().1);
        }
    }
    (output.code, out, without_ids(&output.err))
}

#[test]
fn commands_print_the_same_as_on_a_file() {
    let Some(on_server) = PostgresCli::new() else { return };
    assert_behaves_as_on_a_file(on_server.cli);
}

/// Runs commands on a store on a server and on a file, and asserts that they print the same.
pub(super) fn assert_behaves_as_on_a_file(server: Cli) {
    let clis = [Cli::new(), server];
    for cli in &clis {
        cli.import_garden();
        cli.file("notes/garden.md", "# Allotment\n\n## Gate\n\nThe gate is closed on Sundays.\n");
        cli.file("lines.txt", "What did I say about the tent?\n/quit\n");
    }
    for arguments in [
        &["append", "web:new", "The tent is blue.", "--create", "--key", "once"][..],
        &["append", "web:new", "The tent is blue.", "--key", "once"],
        &["append", "web:new", "Something else.", "--key", "once"],
        &["append", "web:none", "No one is there."],
        &["threads"],
        &["show", "web:new"],
        &["show", "web:garden", "--json"],
        &["show", "web:nowhere"],
        &["search", "tomatoes"],
        &["search", "tent blue", "--json"],
        &["recall", "Which colour has the tent?"],
        &["context", "web:garden"],
        &["context", "web:garden", "--json"],
        &["docs", "add", "notes"],
        &["docs", "add", "notes"],
        &["docs", "search", "When is the gate closed?"],
        &["ask", "When is the gate closed?", "--thread", "asked"],
        &["ask", "The car is red.", "--thread", "asked"],
        &["ask", "What colour is the car?", "--thread", "asked"],
        &["show", "asked"],
        &["docs", "remove", "notes/garden.md"],
        &["docs", "search", "When is the gate closed?"],
        &["stats"],
        &["erase", "--message", "web:garden", "2", "--yes"],
        &["show", "web:garden"],
        &["erase", "web:new", "--yes"],
        &["threads"],
        &["check"],
        &["check", "--repair"],
        &["keys", "list"],
    ] {
        let arguments = [arguments, &NOW[..]].concat();
        let [file, server] = clis.each_ref().map(|cli| comparable_output(cli, &arguments));
        let is_comparable = |line: &&str| !line.contains("store") && !line.contains("size");
        let lines = |text: &str| text.lines().filter(is_comparable).map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(
            (server.0, lines(&server.1), lines(&server.2)),
            (file.0, lines(&file.1), lines(&file.2)),
            "{arguments:?}"
        );
    }
    let [file, server] = clis.each_ref().map(|cli| {
        let exported = cli.exported();
        let vacuumed = cli.run(&["vacuum"]);
        assert_eq!(vacuumed.code, Some(0), "{vacuumed}");
        let chat = [&["chat", "--thread", "chatted"], &NOW[..]].concat();
        let chatted = cli.run_with_input(&chat, b"The tent is green.\nWhat colour is the tent?\n/quit\n");
        assert_eq!(chatted.code, Some(0), "{chatted}");
        (without_folder(cli, &without_ids(&exported.join("\n"))), without_ids(&chatted.out))
    });
    assert!(file.1.contains("green"), "{}", file.1);
    assert_eq!(server, file);
}

pub(super) fn everything(cli: &Cli) -> Vec<String> {
    let mut lines = Vec::new();
    for tenant in ["local", "globex"] {
        let exported = cli.out(&["export", "--as-tenant", "--tenant", tenant]);
        lines.extend(exported.lines().skip(1).map(str::to_owned));
    }
    lines
}

#[test]
fn migrations_and_backups_keep_everything() {
    let (Some(first), Some(second), Some(third)) = (PostgresCli::new(), PostgresCli::new(), PostgresCli::new()) else {
        return;
    };
    let file = Cli::with_garden();
    file.out(&["append", "web:shop", "Is it open?", "--create", "--tenant", "globex"]);
    let before = everything(&file);
    let urls = [&first, &second, &third].map(|on_server| on_server.database.url());
    let (file_name, back) = (file.store().display().to_string(), file.path("back.db").display().to_string());
    for (from, to) in [(&file_name, &urls[0]), (&urls[0], &urls[1]), (&urls[1], &back)] {
        let moved = file.run(&["migrate", "--from", from, "--to", to]);
        assert!(
            moved.code == Some(0) && moved.out.contains("verified: both stores contain 3 threads"),
            "{from}: {moved}"
        );
    }
    assert_eq!(everything(&first.cli), before);
    assert_eq!(everything(&Cli { url: Some(back), ..Cli::new() }), before);

    let backup = file.path("monday.jsonl.gz").display().to_string();
    first.cli.out(&["backup", &backup]);
    third.cli.out(&["restore", &backup]);
    assert_eq!(everything(&third.cli), before);
    let compared = file.run(&["migrate", "--from", &urls[0], "--to", &urls[2], "--verify-only"]);
    assert_eq!(compared.code, Some(0), "{compared}");
    assert_eq!(third.cli.run(&["check"]).code, Some(0));
    assert!(third.cli.out(&["search", "tomatoes"]).contains("omato"));
    // Other data under the same ids is refused.
    second.cli.out(&["append", "web:garden", "Something of its own."]);
    let refused = file.run(&["migrate", "--from", &file_name, "--to", &urls[1]]);
    assert!(refused.code == Some(1) && refused.err.contains("nothing was copied"), "{refused}");
}

#[test]
fn database_errors_have_hints() {
    let Some(on_server) = PostgresCli::new() else { return };
    let url = on_server.database.url();
    for (store, code, expected) in [
        ("postgres://ana:s3cret@127.0.0.1:1/app".to_owned(), 3, "host and port"),
        ("postgres://ana:s3cret@host:port/app".to_owned(), 2, "postgres://USER:PASSWORD@HOST:PORT/DATABASE"),
        (format!("{url}?pool_size=many"), 2, "pool_size is not a number"),
        (format!("{url}_not"), 2, "_not\" does not exist"),
        (url.replace("postgres@", "stranger:s3cret@"), 2, "stranger"),
        (format!("{url}?migrate=off"), 3, "the schema is missing or outdated"),
        ("oracle://ana:s3cret@host/app".to_owned(), 2, "postgres://USER@HOST/DATABASE"),
    ] {
        let output = on_server.cli.run(&["threads", "--store", &store]);
        assert_eq!(output.code, Some(code), "{store}: {output}");
        assert!(output.err.contains(expected) && output.err.contains("hint:"), "{store}: {output}");
        assert!(!output.err.contains("s3cret"), "{output}");
    }
    on_server.cli.import_garden();
    on_server.run_sql("UPDATE threadkeep.messages SET body = 'x' WHERE seq = 1");
    let checked = on_server.cli.run(&["check"]);
    assert!(checked.code == Some(1) && checked.out.contains("damage"), "{checked}");
    let output = on_server.cli.run(&["show", "web:garden"]);
    assert!(output.code == Some(3) && output.err.contains("corrupt"), "{output}");
    on_server.run_sql("INSERT INTO threadkeep.migrations (version, checksum) VALUES (99, 'later')");
    let later = on_server.cli.run(&["threads"]);
    assert!(later.code == Some(3) && later.err.contains("later version"), "{later}");
}

#[test]
fn two_servers_share_one_database() {
    with_postgres(assert_two_servers_share_a_store);
}

/// Kills one of two servers, and asserts that the other one has every acknowledged message.
pub(super) fn assert_two_servers_share_a_store(cli: &Cli) {
    let (mut one, other) = (serve::Server::start(cli), serve::Server::start(cli));
    let thread = serve::thread(&one);
    let mut stream = other.listen(&thread);
    let acknowledged = append_until_down(&one, &thread, "-KILL");
    assert_eq!(one.child.wait().unwrap().code(), None);
    // Subscribers of the other instance receive each acknowledged message once.
    let mut received = 0;
    while received < acknowledged.len() {
        received += usize::from(stream.next().expect("the stream ended").starts_with("id:"));
    }
    assert_stored(cli, &thread, &acknowledged);
    let (status, body) = other.ask(&format!("GET /v1/threads/{thread}"), "").unwrap();
    assert!(status.contains("200"), "{body}");
    let body: Value = serde_json::from_str(&body).unwrap();
    assert!(body["messages"].as_u64() >= Some(acknowledged.len() as u64), "{body}");
}
