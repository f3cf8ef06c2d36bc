use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

/// Something of an assistant that can be set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Setting {
    /// The variable of the environment.
    pub variable: &'static str,
    /// The key of the configuration file.
    pub key: &'static str,
    /// What a value of it is.
    pub kind: SettingKind,
    /// What it is for, in a few words.
    pub help: &'static str,
    /// What holds where it is not set.
    pub default: SettingDefault,
}

/// What a value is. The program checks it before the assistant sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SettingKind {
    /// Any text.
    Text,
    /// A file or a folder.
    File,
    /// An address, which may hold a password.
    Url,
    /// A whole number, at least 1.
    Count,
    /// `true` or `false`.
    Flag,
    /// Text that nobody may see.
    Secret,
}

/// What holds where a setting is not set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SettingDefault {
    /// A value, or words about it; empty for none.
    Shown(&'static str),
    /// The file of this name in the program's data folder.
    DataFile(&'static str),
}

/// The values of an assistant's settings. Cheap to make, never shown.
#[derive(Clone, Default)]
pub struct PluginSettings {
    values: BTreeMap<&'static str, String>,
    data_folder: Option<PathBuf>,
}

impl PluginSettings {
    /// Takes the values of these settings from where `value` finds them by their variables. `data_folder` is where the
    /// program keeps its data; `None` where there is no such place.
    pub fn new(settings: &[Setting], value: impl Fn(&str) -> Option<String>, data_folder: Option<PathBuf>) -> Self {
        let values = settings.iter().filter_map(|setting| Some((setting.variable, value(setting.variable)?)));
        Self { values: values.collect(), data_folder }
    }

    /// A setting's value, where it is set.
    #[must_use]
    pub fn get(&self, setting: &Setting) -> Option<&str> {
        self.values.get(setting.variable).map(String::as_str)
    }

    /// The file that a setting names, else its default file; `None` where there is neither.
    #[must_use]
    pub fn file(&self, setting: &Setting) -> Option<PathBuf> {
        match (self.get(setting), setting.default) {
            (Some(file), _) => Some(PathBuf::from(file)),
            (None, SettingDefault::DataFile(name)) => Some(self.data_folder.as_ref()?.join(name)),
            (None, SettingDefault::Shown(_)) => None,
        }
    }
}

/// Names what is set; values may be secret.
impl fmt::Debug for PluginSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PluginSettings")
            .field("set", &self.values.keys())
            .field("data_folder", &self.data_folder)
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: Setting = Setting {
        variable: "GARDENER_KEY",
        key: "gardener.key",
        kind: SettingKind::Secret,
        help: "the key",
        default: SettingDefault::Shown(""),
    };
    const ALMANAC: Setting = Setting {
        variable: "GARDENER_ALMANAC",
        key: "gardener.almanac",
        kind: SettingKind::File,
        help: "the almanac",
        default: SettingDefault::DataFile("gardener.almanac"),
    };

    #[test]
    fn an_assistant_sees_its_own_settings_alone_and_nobody_sees_their_values() {
        let everything = |_: &str| Some("s3cret".to_owned());
        let settings = PluginSettings::new(&[KEY], everything, Some(PathBuf::from("/data")));
        assert_eq!((settings.get(&KEY), settings.get(&ALMANAC)), (Some("s3cret"), None));
        assert_eq!(settings.file(&ALMANAC), Some(PathBuf::from("/data/gardener.almanac")));
        let shown = format!("{settings:?}");
        assert!(shown.contains("GARDENER_KEY") && !shown.contains("s3cret"), "{shown}");
    }

    #[test]
    fn a_file_is_the_one_that_is_named_else_the_one_in_the_data_folder() {
        let named = PluginSettings::new(&[ALMANAC], |_| Some("own.almanac".to_owned()), Some(PathBuf::from("/data")));
        assert_eq!(named.file(&ALMANAC), Some(PathBuf::from("own.almanac")));
        assert_eq!(PluginSettings::default().file(&ALMANAC), None);
        assert_eq!(PluginSettings::default().file(&KEY), None);
    }
}
