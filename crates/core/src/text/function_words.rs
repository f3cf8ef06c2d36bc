//! Function words of each language, folded.

use std::collections::HashMap;
use std::sync::LazyLock;

use foldhash::fast::RandomState;

use super::{Language, stem};

/// The maximum length of a function word, in bytes.
const MAX_WORD_BYTES: usize = 10;

/// A function word.
struct FunctionWord {
    /// For each language in the order of [`Language::ALL`], whether this is one of its function words.
    is_in: [bool; Language::ALL.len()],
    /// The word's stem in each language.
    stems: [String; Language::ALL.len()],
}

/// Returns, for each language in the order of [`Language::ALL`], whether a word is one of its function words.
pub(super) fn languages_of(word: &str) -> [bool; Language::ALL.len()] {
    find(word).map(|known| known.is_in).unwrap_or_default()
}

/// Returns the stem of a function word of any language: almost half of the words of a text are function words, so their stems are
/// kept.
pub(super) fn stem_of(word: &str, language: Language) -> Option<&'static str> {
    find(word).map(|known| &*known.stems[language as usize])
}

fn find(word: &str) -> Option<&'static FunctionWord> {
    // The length is checked first because this runs for every word of every searched text.
    if word.len() <= MAX_WORD_BYTES { FUNCTION_WORDS.get(word) } else { None }
}

static FUNCTION_WORDS: LazyLock<HashMap<&str, FunctionWord, RandomState>> = LazyLock::new(|| {
    let mut words: HashMap<_, FunctionWord, _> = HashMap::default();
    let stemmers = Language::ALL.map(Language::stemmer);
    for language in Language::ALL {
        let language_words = match language {
            Language::English => ENGLISH_WORDS,
            Language::Spanish => SPANISH_WORDS,
        };
        for word in language_words.split_whitespace() {
            debug_assert!(word.len() <= MAX_WORD_BYTES, "{word} is longer than MAX_WORD_BYTES");
            let known = words.entry(word).or_insert_with(|| FunctionWord {
                is_in: Default::default(),
                stems: Language::ALL.map(|language| stem(word, language, &stemmers[language as usize])),
            });
            known.is_in[language as usize] = true;
        }
    }
    words
});

// Parts of contractions (`don`, `t`, `ll`) are listed because words are split at apostrophes.
const ENGLISH_WORDS: &str = "
    a an the this that these those some such
    i me my mine myself you your yours yourself yourselves he him his himself she her hers herself it its itself
    we us our ours ourselves they them their theirs themselves
    am is are was were be been being do does did doing done have has had having
    can could will would shall should may might must cannot
    don doesn didn isn aren wasn weren haven hasn hadn won wouldn shouldn couldn mustn ain t s d m ll re ve
    what which who whom whose when where why how
    and or but if because as than so then too very just also only not nor no
    of at by for with about against between into through during before after above below to from up down in out on
    off over under again further once here there all any both each few more most many much other own same until while";

const SPANISH_WORDS: &str = "
    el la lo los las un una unos unas este esta esto estos estas ese esa eso esos esas aquel aquella aquellos aquellas
    yo mi mis mio mia tu tus ti tuyo tuya usted ustedes ella ello ellos ellas su sus suyo suya
    nosotros nosotras nuestro nuestra nuestros nuestras vosotros vosotras os se me te le les nos
    soy eres es somos son era eras eran fui fue fueron ser sido siendo estoy estas esta estamos estan estaba estaban
    he has ha hemos han habia habian haber hay hubo puede pueden podria
    que quien quienes cual cuales cuando donde cuanto cuanta cuantos cuantas como porque
    y e o u ni pero si sino aunque pues ya muy mas menos tambien tampoco solo no
    de del al a ante bajo con contra desde durante en entre hacia hasta para por segun sin sobre tras
    todo toda todos todas otro otra otros otras mismo misma algo alguien nada nadie cada";
