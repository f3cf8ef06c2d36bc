//! Reading arbitrary bytes neither panics nor loops forever.

use proptest::collection::vec;
use proptest::prelude::*;
use threadkeep_core::exchange::ImportItem;
use threadkeep_formats::Format;

use super::{FIXTURES, fixture, gzip, open};

/// Reads to the end. Each byte yields at most one item or error, and each conversation one more item for its thread.
fn read_to_the_end(bytes: &[u8], format: Option<Format>) -> Result<(), TestCaseError> {
    let Ok(mut reader) = open(bytes, format) else { return Ok(()) };
    let bound = 2 * bytes.len() + 2;
    let mut is_finished = false;
    for item in reader.by_ref().take(bound) {
        prop_assert!(!is_finished, "no item may follow a final error");
        match item {
            Ok(ImportItem::Message(message)) => prop_assert!(message.content.check().is_ok()),
            Ok(ImportItem::Tree(tree)) => {
                for (index, node) in tree.nodes.iter().enumerate() {
                    prop_assert!(node.message.content.check().is_ok());
                    prop_assert!(node.parent.is_none_or(|parent| parent < index));
                }
                prop_assert!(tree.current.is_none_or(|current| current < tree.nodes.len()));
            }
            Ok(_) => {}
            Err(error) => {
                prop_assert!(error.line >= 1 && !error.to_string().is_empty());
                is_finished = error.fault.is_final();
            }
        }
    }
    prop_assert!(reader.next().is_none(), "more than {bound} items");
    Ok(())
}

fn some_format() -> impl Strategy<Value = Option<Format>> {
    proptest::option::of(proptest::sample::select(Format::ALL.to_vec()))
}

/// Generates fragments of JSON, which reach deeper code than random bytes.
fn json_like() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        Just("[".to_owned()),
        Just("]".to_owned()),
        Just("{".to_owned()),
        Just("}".to_owned()),
        Just("\"".to_owned()),
        Just("\\".to_owned()),
        Just(",".to_owned()),
        Just(":".to_owned()),
        Just("\n".to_owned()),
        Just("null".to_owned()),
        Just("{\"messages\":[{\"role\":\"user\",\"content\":\"".to_owned()),
        Just("\"conversations\":".to_owned()),
        Just("{\"mapping\":{\"a\":{\"parent\":\"a\"}}}".to_owned()),
        "\\PC{0,4}",
    ];
    vec(piece, 0..60).prop_map(|pieces| pieces.concat())
}

/// Generates a damaged fixture: bytes are replaced or inserted, or the end is removed. Compressed in some cases.
fn damaged_fixture() -> impl Strategy<Value = Vec<u8>> {
    let fixtures: Vec<_> = FIXTURES.iter().map(|(_, name, _, _)| fixture(name)).collect();
    let change = (any::<prop::sample::Index>(), any::<u8>(), 0..3_u8);
    (proptest::sample::select(fixtures), vec(change, 1..6), any::<bool>()).prop_map(
        |(mut bytes, changes, is_compressed)| {
            if is_compressed {
                bytes = gzip(&bytes);
            }
            for (at, byte, kind) in changes {
                let at = at.index(bytes.len());
                match kind {
                    0 => bytes[at] = byte,
                    1 => bytes.truncate(at.max(1)),
                    _ => bytes.insert(at, byte),
                }
            }
            bytes
        },
    )
}

proptest! {
    #[test]
    fn reading_any_bytes_terminates(bytes in vec(any::<u8>(), 0..300), format in some_format()) {
        read_to_the_end(&bytes, format)?;
    }

    #[test]
    fn reading_json_fragments_terminates(text in json_like(), format in some_format()) {
        read_to_the_end(text.as_bytes(), format)?;
    }

    #[test]
    fn reading_damaged_files_terminates(bytes in damaged_fixture(), format in some_format()) {
        // Compressed data can yield more items than it has bytes.
        let Ok(reader) = open(bytes.as_slice(), format) else { return Ok(()) };
        prop_assert!(reader.take(10_000).count() < 10_000);
    }
}
