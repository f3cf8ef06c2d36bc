use super::super::rows::{MessageRow, TextPart};
use super::*;
use threadkeep::Role;

const NARROW: (u16, u16) = (80, 24);
const WIDE: (u16, u16) = (200, 50);

fn id(number: u64) -> ThreadId {
    format!("01a214d9-0f9c-7000-8000-{number:012}").parse().unwrap()
}

fn info(number: u64) -> ThreadInfo {
    ThreadInfo { id: id(number), title: format!("Thread {number}"), source: "codex".to_owned(), message_count: 1_000 }
}

fn threads(count: u64) -> Event {
    let row = |number| ThreadRow { thread: info(number), at: "2026-11-25 22:35".to_owned() };
    Event::ThreadsListed((1..=count).map(row).collect())
}

fn hit(number: u64) -> HitRow {
    HitRow {
        thread: info(number),
        seq: number * 10,
        role: Role::User,
        speaker: "user".to_owned(),
        at: "2026-11-25 22:35".to_owned(),
        score: 1.0,
        excerpt: vec![("the ".to_owned(), false), ("ledger".to_owned(), true)],
    }
}

fn found(query: &str, count: u64, limit: usize) -> Found {
    Found { query: query.to_owned(), hits: (1..=count).map(hit).collect(), limit, ..Found::default() }
}

fn page(seqs: std::ops::Range<u64>) -> Page {
    let row = |seq| {
        let parts = vec![TextPart { text: "a line".to_owned(), is_dim: false }];
        MessageRow { seq, role: Some(Role::User), speaker: "user".to_owned(), details: String::new(), parts }
    };
    Page { messages: seqs.map(row).collect(), has_earlier: true, has_later: true }
}

fn state(size: (u16, u16)) -> State {
    let (mut state, effects) = State::new(size.0, size.1, "");
    assert_eq!(effects, [Effect::ListThreads]);
    state.handle(threads(100));
    state
}

fn press(state: &mut State, code: KeyCode) -> Vec<Effect> {
    state.handle(Event::Key(KeyEvent::new(code, KeyModifiers::NONE)))
}

fn type_text(state: &mut State, text: &str) -> Vec<Effect> {
    text.chars().flat_map(|c| press(state, KeyCode::Char(c))).collect()
}

/// Types a query, and lets the delay pass. Returns the number of the search.
fn search_for(state: &mut State, text: &str) -> u64 {
    press(state, KeyCode::Char('/'));
    let started = type_text(state, text);
    let Some(Effect::Start(timer @ Timer::Search(_))) = started.last() else { panic!("{started:?}") };
    match &state.handle(Event::Elapsed(*timer))[..] {
        [Effect::Search { generation, .. }] => *generation,
        effects => panic!("{effects:?}"),
    }
}

#[test]
fn a_search_starts_when_typing_pauses_and_replaces_older_ones() {
    let mut state = state(NARROW);
    press(&mut state, KeyCode::Char('/'));
    let timers = type_text(&mut state, "ledg");
    assert_eq!(timers.len(), 4);
    let elapsed: Vec<Vec<Effect>> = timers
        .into_iter()
        .map(|effect| match effect {
            Effect::Start(timer) => state.handle(Event::Elapsed(timer)),
            effect => panic!("{effect:?}"),
        })
        .collect();
    assert_eq!(elapsed[..3].concat(), []);
    // The word may be incomplete, so it is also a prefix.
    let [Effect::Search { generation: first, query, limit: HITS }] = &elapsed[3][..] else { panic!("{elapsed:?}") };
    assert_eq!(query, "ledg ledg*");
    let second = match &press(&mut state, KeyCode::Enter)[..] {
        [Effect::Search { generation, query, .. }] if query == "ledg" => *generation,
        effects => panic!("{effects:?}"),
    };
    assert!(state.is_searching);
    state.handle(Event::SearchFinished { generation: *first, found: found("ledg ledg*", 3, HITS) });
    assert_eq!(state.found, None);
    state.handle(Event::SearchFinished { generation: second, found: found("ledg", 2, HITS) });
    assert_eq!((state.found.as_ref().unwrap().hits.len(), state.is_searching), (2, false));
}

#[test]
fn only_an_unfinished_word_becomes_a_prefix() {
    for (query, searched) in [
        ("decision ledg", "decision ledg ledg*"),
        ("ab", "ab"),
        ("\"the ledg", "\"the ledg"),
        ("-ledg", "-ledg"),
        ("in:codex", "in:codex"),
        ("migrat*", "migrat*"),
        ("since:2026-03 año", "since:2026-03 año año*"),
        ("", ""),
    ] {
        assert_eq!(with_prefix(query), searched);
    }
}

#[test]
fn letters_are_typed_in_the_query_and_are_commands_elsewhere() {
    let mut state = state(NARROW);
    press(&mut state, KeyCode::Char('/'));
    type_text(&mut state, "q?ejk/");
    assert_eq!((state.query.text(), state.focus), ("q?ejk/", Focus::Query));
    press(&mut state, KeyCode::Enter);
    assert_eq!(press(&mut state, KeyCode::Char('q')), [Effect::Quit]);
}

#[test]
fn control_c_quits_everywhere() {
    let quit = Event::Key(KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL));
    for keys in [&[][..], &[KeyCode::Char('/')], &[KeyCode::Enter], &[KeyCode::Char('e')], &[KeyCode::Char('?')]] {
        let mut state = state(NARROW);
        for key in keys {
            press(&mut state, *key);
        }
        assert_eq!(state.handle(quit.clone()), [Effect::Quit], "{keys:?}");
    }
}

#[test]
fn a_hit_opens_in_its_place_and_escape_leads_back() {
    let mut state = state(NARROW);
    let generation = search_for(&mut state, "ledger ");
    state.handle(Event::SearchFinished { generation, found: found("ledger", 5, HITS) });
    press(&mut state, KeyCode::Down);
    press(&mut state, KeyCode::Enter);
    let effects = press(&mut state, KeyCode::Enter);
    let [Effect::Read { generation, thread, place: Place::Around(seq), whole }] = &effects[..] else {
        panic!("{effects:?}")
    };
    assert_eq!((*thread, *seq, *whole), (id(2), 20, Some(20)));
    state.handle(Event::PageRead { generation: *generation, place: Place::Around(20), page: page(1..51) });
    let reader = state.reader.as_ref().unwrap();
    assert_eq!(reader.selected_message().unwrap().seq, 20);
    assert_eq!(reader.target.as_ref().unwrap().reasons, "words: ledger · score 1.00");
    assert_eq!(press(&mut state, KeyCode::Char('c')), [Effect::ReadText { thread: id(2), seq: 20 }]);
    let effects = press(&mut state, KeyCode::Char('n'));
    assert!(matches!(&effects[..], [Effect::Read { thread, .. }] if *thread == id(3)), "{effects:?}");
    press(&mut state, KeyCode::Esc);
    assert_eq!((state.focus, state.position().selected), (Focus::List, 2));
    press(&mut state, KeyCode::Esc);
    assert!(state.found.is_none() && state.query.text().is_empty());
}

#[test]
fn pages_of_an_earlier_conversation_are_ignored() {
    let mut state = state(NARROW);
    let first = press(&mut state, KeyCode::Enter);
    let [Effect::Read { generation, place: Place::Last, .. }] = first[..] else { panic!("{first:?}") };
    press(&mut state, KeyCode::Char('n'));
    state.handle(Event::PageRead { generation, place: Place::Last, page: page(1..51) });
    assert!(state.reader.as_ref().unwrap().messages.is_empty());
    state.handle(Event::Failed { task: Task::Read(generation), message: "gone".to_owned() });
    assert_eq!(state.note, None);
}

#[test]
fn scrolling_to_an_end_reads_more_once() {
    let mut state = state(NARROW);
    let opened = press(&mut state, KeyCode::Enter);
    let [Effect::Read { generation, .. }] = opened[..] else { panic!("{opened:?}") };
    state.handle(Event::PageRead {
        generation,
        place: Place::Last,
        page: Page { has_later: false, ..page(951..1_001) },
    });
    let effects: Vec<Effect> = (0..20).flat_map(|_| press(&mut state, KeyCode::PageUp)).collect();
    let expected = Effect::Read { generation, thread: id(1), place: Place::Before(951), whole: None };
    assert_eq!(effects, [expected]);
    state.handle(Event::Failed { task: Task::Read(generation), message: "disk\u{1b}[2J".to_owned() });
    assert_eq!(state.note, Some(Note { text: "disk\u{fffd}[2J".to_owned(), is_error: true }));
    assert_eq!(press(&mut state, KeyCode::PageUp), []);
}

#[test]
fn the_end_of_the_hits_requests_more_and_keeps_the_selection() {
    let mut state = state(NARROW);
    let generation = search_for(&mut state, "ledger ");
    state.handle(Event::SearchFinished { generation, found: found("ledger", 50, 50) });
    press(&mut state, KeyCode::Enter);
    let effects = press(&mut state, KeyCode::End);
    let [Effect::Search { generation, query, limit: 100 }] = &effects[..] else { panic!("{effects:?}") };
    assert_eq!(query, "ledger");
    state.handle(Event::SearchFinished { generation: *generation, found: found("ledger", 70, 100) });
    assert_eq!((state.position().selected, state.count()), (49, 70));
    assert_eq!(press(&mut state, KeyCode::End), []);
    // A failure is not repeated.
    let generation = search_for(&mut state, "s ");
    state.handle(Event::SearchFinished { generation, found: found("ledgers", 50, 50) });
    let effects = press(&mut state, KeyCode::PageDown);
    assert_eq!(effects, []);
    press(&mut state, KeyCode::Tab);
    let effects = press(&mut state, KeyCode::End);
    let [Effect::Search { generation, .. }] = &effects[..] else { panic!("{effects:?}") };
    let task = Task::Search(*generation);
    assert_eq!(state.handle(Event::Failed { task, message: "gone".to_owned() }), []);
    assert_eq!(press(&mut state, KeyCode::Home), []);
    assert_eq!(press(&mut state, KeyCode::End), []);
}

#[test]
fn a_wide_screen_shows_the_selected_item_after_a_delay() {
    let mut state = state(WIDE);
    let moved = [press(&mut state, KeyCode::Down), press(&mut state, KeyCode::Down)].concat();
    let reads: Vec<Effect> = moved
        .into_iter()
        .flat_map(|effect| match effect {
            Effect::Start(timer) => state.handle(Event::Elapsed(timer)),
            effect => panic!("{effect:?}"),
        })
        .collect();
    let [Effect::Read { generation, thread, .. }] = reads[..] else { panic!("{reads:?}") };
    assert_eq!((thread, state.focus), (id(3), Focus::List));
    state.handle(Event::PageRead { generation, place: Place::Last, page: page(951..1_001) });
    // It is already there.
    assert_eq!(press(&mut state, KeyCode::Enter), []);
    assert_eq!(state.focus, Focus::Reader);
    state.handle(Event::Resized { columns: 80, rows: 24 });
    assert_eq!((state.areas().list.area(), state.areas().reader.width), (0, 80));
}

#[test]
fn every_size_and_key_is_handled() {
    let keys = [
        KeyCode::Enter,
        KeyCode::Esc,
        KeyCode::Up,
        KeyCode::Down,
        KeyCode::PageUp,
        KeyCode::PageDown,
        KeyCode::Home,
        KeyCode::End,
        KeyCode::Tab,
        KeyCode::Left,
        KeyCode::Right,
        KeyCode::Backspace,
        KeyCode::Delete,
        KeyCode::F(1),
        KeyCode::Char('/'),
        KeyCode::Char('['),
        KeyCode::Char(']'),
        KeyCode::Char('n'),
        KeyCode::Char('p'),
        KeyCode::Char('e'),
        KeyCode::Char('r'),
        KeyCode::Char('c'),
        KeyCode::Char('g'),
        KeyCode::Char('x'),
    ];
    for size in [(0, 0), (1, 1), (20, 4), NARROW, (120, 6), WIDE] {
        for (count, prepared) in [(0, false), (3, false), (3, true)] {
            let (mut state, _) = State::new(size.0, size.1, if prepared { "ledger" } else { "" });
            state.handle(threads(count));
            state.handle(Event::SearchFinished { generation: 1, found: found("ledger", 60, 50) });
            for (at, first) in keys.iter().enumerate() {
                for second in &keys[..=at] {
                    for key in [*first, *second] {
                        for effect in press(&mut state, key) {
                            if let Effect::Read { generation, place, .. } = effect {
                                state.handle(Event::PageRead { generation, place, page: page(1..20) });
                            }
                        }
                    }
                    assert!(state.position().selected <= state.count());
                }
            }
        }
    }
}

#[test]
fn an_export_asks_for_a_file() {
    let mut state = state(NARROW);
    press(&mut state, KeyCode::Char('e'));
    assert_eq!(state.export_prompt.as_ref().unwrap().file.text(), "threadkeep-01a214d9-0f9c-7000.md");
    state.handle(Event::Key(KeyEvent::new(KeyCode::Char('u'), KeyModifiers::CONTROL)));
    state.handle(Event::Paste("notes.jsonl\n".to_owned()));
    let effects = press(&mut state, KeyCode::Enter);
    assert_eq!(effects, [Effect::Export { thread: id(1), file: "notes.jsonl".into() }]);
    state.handle(Event::Exported { file: "notes.jsonl".into(), messages: 1_000, unreadable: 1 });
    let text = "exported 1,000 messages to notes.jsonl; 1 message cannot be read".to_owned();
    assert_eq!(state.note, Some(Note { text, is_error: false }));
    press(&mut state, KeyCode::Char('e'));
    press(&mut state, KeyCode::Esc);
    assert_eq!((&state.export_prompt, &state.note), (&None, &None));
}

#[test]
fn a_copy_fits_the_clipboard_of_a_terminal() {
    let mut state = state(NARROW);
    assert_eq!(press(&mut state, KeyCode::Char('c')), [Effect::SetClipboard(id(1).to_string())]);
    let read = |length: usize| Event::TextRead { text: "x".repeat(length), name: "message #1".to_owned() };
    assert_eq!(state.handle(read(CLIPBOARD_BYTES)), [Effect::SetClipboard("x".repeat(CLIPBOARD_BYTES))]);
    assert_eq!(state.handle(read(CLIPBOARD_BYTES + 1)), []);
    assert!(state.note.unwrap().is_error);
}
