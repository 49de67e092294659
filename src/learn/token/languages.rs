//! The languages of models that translate, which are tokens.

use serde_json::Value as Json;

use super::vocabulary::Files;

/// The languages of mBART (Liu et al. 2020), in the order of their ids.
pub(super) const LANGUAGES: [&str; 25] = [
    "ar_AR", "cs_CZ", "de_DE", "en_XX", "es_XX", "et_EE", "fi_FI", "fr_XX", "gu_IN", "hi_IN", "it_IT",
    "ja_XX", "kk_KZ", "ko_KR", "lt_LT", "lv_LV", "my_MM", "ne_NP", "nl_XX", "ro_RO", "ru_RU", "si_LK",
    "tr_TR", "vi_VN", "zh_CN",
];

/// The languages that mBART-50 has in addition (Tang et al. 2020), in the order of their ids.
pub(super) const MORE_LANGUAGES: [&str; 27] = [
    "af_ZA", "az_AZ", "bn_IN", "fa_IR", "he_IL", "hr_HR", "id_ID", "ka_GE", "km_KH", "mk_MK", "ml_IN",
    "mn_MN", "mr_IN", "pl_PL", "ps_AF", "pt_XX", "sv_SE", "sw_KE", "ta_IN", "te_IN", "th_TH", "tl_XX",
    "uk_UA", "ur_PK", "xh_ZA", "gl_ES", "sl_SI",
];

/// The languages of M2M-100 (Fan et al. 2020), in the order of their ids.
const M2M_LANGUAGES: [&str; 100] = [
    "af", "am", "ar", "ast", "az", "ba", "be", "bg", "bn", "br", "bs", "ca", "ceb", "cs", "cy", "da", "de",
    "el", "en", "es", "et", "fa", "ff", "fi", "fr", "fy", "ga", "gd", "gl", "gu", "ha", "he", "hi", "hr",
    "ht", "hu", "hy", "id", "ig", "ilo", "is", "it", "ja", "jv", "ka", "kk", "km", "kn", "ko", "lb", "lg",
    "ln", "lo", "lt", "lv", "mg", "mk", "ml", "mn", "mr", "ms", "my", "ne", "nl", "no", "ns", "oc", "or",
    "pa", "pl", "ps", "pt", "ro", "ru", "sd", "si", "sk", "sl", "so", "sq", "sr", "ss", "su", "sv", "sw",
    "ta", "th", "tl", "tn", "tr", "uk", "ur", "uz", "vi", "wo", "xh", "yi", "yo", "zh", "zu",
];

/// The languages of the models of this family for the shared task of WMT 2021.
const WMT_LANGUAGES: [&str; 8] = ["en", "ha", "is", "ja", "cs", "ru", "zh", "de"];

impl Files {
    /// The language of texts that are read, which is `usual` where the files do not name one.
    pub(super) fn source_language(&self, usual: &str) -> String {
        self.config.get("src_lang").and_then(Json::as_str).unwrap_or(usual).to_owned()
    }

    /// The tokens of the languages of M2M-100.
    ///
    /// # Errors
    /// The files name other languages than are known.
    pub(super) fn languages(&self) -> Result<Vec<String>, String> {
        let own: &[&str] = match self.config.get("language_codes").and_then(Json::as_str) {
            // The names that the library gives to the two lists; without one it takes the first.
            None | Some("m2m100") => &M2M_LANGUAGES,
            Some("wmt21") => &WMT_LANGUAGES,
            Some(other) => return Err(format!("the `language_codes` `{other}` are not known")),
        };
        Ok(own.iter().map(|code| format!("__{code}__")).collect())
    }
}
