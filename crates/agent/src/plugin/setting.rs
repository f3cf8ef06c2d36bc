use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

/// A setting of an assistant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Setting {
    /// Its environment variable.
    pub variable: &'static str,
    /// Its key in the configuration file.
    pub key: &'static str,
    /// The kind of its values.
    pub kind: SettingKind,
    /// Its description, in a few words.
    pub help: &'static str,
    /// Its default.
    pub default: SettingDefault,
}

/// The kind of a setting's values. The program validates values before the assistant reads them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SettingKind {
    /// Any text.
    Text,
    /// A file or a folder.
    File,
    /// A URL, which may contain a password.
    Url,
    /// An integer, at least 1.
    Count,
    /// `true` or `false`.
    Flag,
    /// Text that is never displayed or logged.
    Secret,
}

/// The default of a setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SettingDefault {
    /// A value, or a description of it, as displayed to users; empty for none.
    Description(&'static str),
    /// The file with this name in the program's data folder.
    DataFile(&'static str),
}

/// The values of an assistant's settings.
#[derive(Clone, Default)]
pub struct PluginSettings {
    values: BTreeMap<&'static str, String>,
    data_folder: Option<PathBuf>,
}

impl PluginSettings {
    /// Reads the values of `settings`. `value` returns the value of an environment variable; `data_folder` is the program's data
    /// folder, if it has one.
    pub fn new(settings: &[Setting], value: impl Fn(&str) -> Option<String>, data_folder: Option<PathBuf>) -> Self {
        let values = settings.iter().filter_map(|setting| Some((setting.variable, value(setting.variable)?)));
        Self { values: values.collect(), data_folder }
    }

    /// Returns a setting's value, if it is set.
    #[must_use]
    pub fn get(&self, setting: &Setting) -> Option<&str> {
        self.values.get(setting.variable).map(String::as_str)
    }

    /// Returns the file that a setting names, or its default file; `None` if there is neither.
    #[must_use]
    pub fn file(&self, setting: &Setting) -> Option<PathBuf> {
        match (self.get(setting), setting.default) {
            (Some(file), _) => Some(PathBuf::from(file)),
            (None, SettingDefault::DataFile(name)) => Some(self.data_folder.as_ref()?.join(name)),
            (None, SettingDefault::Description(_)) => None,
        }
    }
}

/// Prints only the names of settings, because values may be secret.
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
        default: SettingDefault::Description(""),
    };
    const ALMANAC: Setting = Setting {
        variable: "GARDENER_ALMANAC",
        key: "gardener.almanac",
        kind: SettingKind::File,
        help: "the almanac",
        default: SettingDefault::DataFile("gardener.almanac"),
    };

    #[test]
    fn plugin_settings_contain_only_declared_settings_and_hide_their_values() {
        let secret_for_all = |_: &str| Some("s3cret".to_owned());
        let settings = PluginSettings::new(&[KEY], secret_for_all, Some(PathBuf::from("/data")));
        assert_eq!((settings.get(&KEY), settings.get(&ALMANAC)), (Some("s3cret"), None));
        assert_eq!(settings.file(&ALMANAC), Some(PathBuf::from("/data/gardener.almanac")));
        let debug = format!("{settings:?}");
        assert!(debug.contains("GARDENER_KEY") && !debug.contains("s3cret"), "{debug}");
    }

    #[test]
    fn file_returns_the_configured_file_or_the_default_in_the_data_folder() {
        let configured =
            PluginSettings::new(&[ALMANAC], |_| Some("own.almanac".to_owned()), Some(PathBuf::from("/data")));
        assert_eq!(configured.file(&ALMANAC), Some(PathBuf::from("own.almanac")));
        assert_eq!(PluginSettings::default().file(&ALMANAC), None);
        assert_eq!(PluginSettings::default().file(&KEY), None);
    }
}
