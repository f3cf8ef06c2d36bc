use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use threadkeep::ThreadId;

use super::super::reader::{Page, Place};
use super::super::rows::{Found, MessageRow, TextPart};
use super::super::state::{Effect, Event, Timer};
use super::*;

fn id(number: u64) -> ThreadId {
    format!("01a214d9-0f9c-7000-8000-{number:012}").parse().unwrap()
}

fn info(number: u64, title: &str, source: &str, message_count: u64) -> ThreadInfo {
    ThreadInfo { id: id(number), title: title.to_owned(), source: source.to_owned(), message_count }
}

fn threads() -> Vec<ThreadRow> {
    [
        ("Storage of the ledger", "codex", 61, "2026-11-25 22:35"),
        (
            "東京 travel plans, with a title that is far too long for a screen of eighty columns",
            "claude-code",
            1_234_567,
            "2026-11-24 09:01",
        ),
        ("(no title)", "", 0, "2025-01-02 03:04"),
        ("A format with a long name", "some-other-format", 7, "2024-12-31 23:59"),
    ]
    .into_iter()
    .zip(1..)
    .map(|((title, source, count, at), number)| ThreadRow {
        thread: info(number, title, source, count),
        at: at.to_owned(),
    })
    .collect()
}

fn hits() -> Vec<HitRow> {
    let excerpt = |pieces: &[(&str, bool)]| pieces.iter().map(|(text, is)| ((*text).to_owned(), *is)).collect();
    let hit = |thread, seq, role: Role, excerpt| HitRow {
        thread,
        seq,
        role,
        speaker: role.to_string(),
        at: "2026-11-25 22:35".to_owned(),
        score: 4.321,
        excerpt,
    };
    let first = [
        ("Decision: the ", false),
        ("ledger", true),
        (" is a ", false),
        ("SQLite", true),
        (" file, because it has one writer.", false),
    ];
    let long = "words that come before the match and that do not fit on a line of the screen, so they are cut off ";
    let second = [(long, false), ("ledger", true), (" and so on and so forth", false)];
    vec![
        hit(info(1, "Storage of the ledger", "codex", 61), 12, Role::Assistant, excerpt(&first)),
        hit(
            info(2, "東京 travel plans, with a title that is far too long for the screen", "claude-code", 1_234_567),
            1_000,
            Role::Tool,
            excerpt(&second),
        ),
    ]
}

fn messages() -> Page {
    let row = |seq: u64, role: Role, text: &str, is_dim| MessageRow {
        seq,
        role: Some(role),
        speaker: role.to_string(),
        details: format!(" · 2026-11-25 22:35 · #{seq}"),
        parts: vec![TextPart { text: text.to_owned(), is_dim }],
    };
    let answer = "Decision: the ledger is a SQLite file, because it has one writer.\n\n```sql\n\tcreate table ledgers (at integer primary key, amount integer not null)\n```\nA long line is wrapped between words, so that no word is cut in the middle on a screen of 80 columns.";
    Page {
        messages: vec![
            row(11, Role::User, "Should the ledger be in Postgres or in SQLite?", false),
            row(12, Role::Assistant, answer, false),
            row(13, Role::Tool, "→ write_file({\"path\":\"ledger.sql\"})", true),
            row(14, Role::User, "Merci. 東京へ行きます。", false),
        ],
        has_earlier: true,
        has_later: true,
    }
}

fn press(state: &mut State, code: KeyCode) -> Vec<Effect> {
    state.handle(Event::Key(KeyEvent::new(code, KeyModifiers::NONE)))
}

/// Creates a state with a list of threads.
fn listing(columns: u16, rows: u16) -> State {
    let (mut state, _) = State::new(columns, rows, "");
    state.handle(Event::ThreadsListed(threads()));
    state
}

/// Creates a state with the results of a search, and answers every read.
fn searching(columns: u16, rows: u16) -> State {
    let (mut state, effects) = State::new(columns, rows, "legder sqlite in:codex");
    let generation = effects.iter().find_map(|effect| match effect {
        Effect::Search { generation, .. } => Some(*generation),
        _ => None,
    });
    state.handle(Event::ThreadsListed(threads()));
    let query = "legder sqlite in:codex".to_owned();
    let corrections = vec![("legder".to_owned(), "ledger".to_owned())];
    let found = Found { query, hits: hits(), corrections, limit: 50, is_truncated: true, ..Found::default() };
    let effects = state.handle(Event::SearchFinished { generation: generation.unwrap(), found });
    answer(&mut state, effects);
    state
}

fn answer(state: &mut State, effects: Vec<Effect>) {
    for effect in effects {
        match effect {
            Effect::Start(timer @ Timer::Preview(_)) => {
                let effects = state.handle(Event::Elapsed(timer));
                answer(state, effects);
            }
            Effect::Read { generation, place, .. } => {
                let place = match place {
                    Place::Around(seq) => Place::Around(seq),
                    _ => Place::Last,
                };
                state.handle(Event::PageRead { generation, place, page: Page { has_earlier: false, ..messages() } });
            }
            _ => {}
        }
    }
}

fn drawn(state: &State) -> TestBackend {
    let mut terminal = Terminal::new(TestBackend::new(state.columns, state.rows)).unwrap();
    terminal.draw(|frame| draw(frame, state, Theme { has_colour: true })).unwrap();
    terminal.backend().clone()
}

#[test]
fn list_of_threads() {
    insta::assert_snapshot!("threads_80x24", drawn(&listing(80, 24)));
}

#[test]
fn list_and_conversation_on_a_wide_screen() {
    let mut state = searching(200, 50);
    insta::assert_snapshot!("hits_200x50", drawn(&state));
    let effects = press(&mut state, KeyCode::Enter);
    answer(&mut state, effects);
    assert_eq!(state.focus, Focus::Reader);
    drawn(&state);
}

#[test]
fn hits_and_conversation_on_a_narrow_screen() {
    let mut state = searching(80, 24);
    insta::assert_snapshot!("hits_80x24", drawn(&state));
    let effects = press(&mut state, KeyCode::Enter);
    answer(&mut state, effects);
    insta::assert_snapshot!("reader_80x24", drawn(&state));
}

#[test]
fn help_and_the_question_for_a_file() {
    let mut state = listing(80, 24);
    press(&mut state, KeyCode::Char('?'));
    insta::assert_snapshot!("help_80x24", drawn(&state));
    press(&mut state, KeyCode::Char('x'));
    press(&mut state, KeyCode::Char('e'));
    let backend = drawn(&state);
    let bottom = backend.to_string().lines().last().unwrap().trim_matches('"').trim_end().to_owned();
    assert_eq!(bottom, " Export to: threadkeep-01a214d9-0f9c-7000.md");
}

#[test]
fn matches_are_marked_with_and_without_colour() {
    for has_colour in [true, false] {
        let theme = Theme { has_colour };
        let line = excerpt_line(&hits()[0], 80, theme);
        let marked: Vec<&str> =
            line.spans.iter().filter(|span| span.style == theme.matching()).map(|span| span.content.as_ref()).collect();
        assert_eq!(marked, ["ledger", "SQLite"]);
        assert_ne!(theme.matching(), Style::new());
    }
}

#[test]
fn every_size_can_be_drawn() {
    for columns in [0, 1, 2, 5, 13, 40, 80, 119, 120, 121, 200] {
        for rows in [0, 1, 2, 3, 4, 5, 6, 10, 24, 50] {
            for mut state in [listing(columns, rows), searching(columns, rows)] {
                for key in [KeyCode::Char('/'), KeyCode::Char('ñ'), KeyCode::Enter, KeyCode::Enter, KeyCode::Char('?')]
                {
                    let effects = press(&mut state, key);
                    answer(&mut state, effects);
                    drawn(&state);
                }
            }
        }
    }
}

#[test]
fn drawing_for_an_outdated_size_stays_on_the_screen() {
    let state = searching(200, 50);
    let mut terminal = Terminal::new(TestBackend::new(30, 8)).unwrap();
    terminal.draw(|frame| draw(frame, &state, Theme { has_colour: false })).unwrap();
}
