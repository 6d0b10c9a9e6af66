//! Makes what the file says the default of the options, so that every option is read and checked in one place.

use clap::{Arg, ArgAction, Command, error::ErrorKind};

use super::{
    Config,
    file::Setting,
    keys::{CONNECTION, GLOBAL},
};
use crate::failure::Failure;

/// The command line with the file's defaults in it.
pub(crate) fn with_defaults(command: Command, config: &Config) -> Result<Command, Failure> {
    let plain = command.clone();
    config.settings.iter().try_fold(command, |command, setting| {
        let wrong = |what: String| {
            let path = config.path.as_deref().unwrap_or_else(|| std::path::Path::new(""));
            Failure::usage(format!("{}:{}: {}: {what}", path.display(), setting.line, setting.name()))
        };
        let Some((option, values)) = meant(setting).map_err(wrong)? else { return Ok(command) };
        let holder = match setting.section {
            Some(verb) => plain.find_subcommand(verb),
            None => Some(&plain),
        };
        let found =
            holder.and_then(|holder| holder.get_arguments().find(|arg| arg.get_long() == Some(option)));
        let Some(arg) = found else { return Ok(command) };
        check(&plain, setting, arg, &values).map_err(wrong)?;
        let id = arg.get_id().clone();
        let set = |arg: Arg| default_of(arg, values);
        Ok(match setting.section {
            Some(verb) => command.mut_subcommand(verb, |found| found.mut_arg(id, set)),
            None => command.mut_arg(id, set),
        })
    })
}

/// The option and its values; none for what is no option.
fn meant(setting: &Setting) -> Result<Option<(&'static str, Vec<String>)>, String> {
    let Some(section) = setting.section else {
        let Some(key) = GLOBAL.iter().find(|key| key.name == setting.key && !key.option.is_empty()) else {
            return Ok(None);
        };
        if !key.is_inverted {
            return Ok(Some((key.option, setting.values.clone())));
        }
        let opposite = match setting.values.as_slice() {
            [yes] if yes == "true" => "false",
            [no] if no == "false" => "true",
            _ => return Err("write true or false".to_owned()),
        };
        return Ok(Some((key.option, vec![opposite.to_owned()])));
    };
    Ok((section != CONNECTION).then(|| (setting.key, setting.values.clone())))
}

/// Tries the values as if they stood on the command line.
fn check(plain: &Command, setting: &Setting, arg: &Arg, values: &[String]) -> Result<(), String> {
    let is_flag = matches!(arg.get_action(), ArgAction::SetTrue);
    let [one] = values else {
        if !matches!(arg.get_action(), ArgAction::Append) {
            return Err("takes one value".to_owned());
        }
        return values.iter().try_for_each(|value| check(plain, setting, arg, std::slice::from_ref(value)));
    };
    if is_flag {
        return if one == "true" || one == "false" { Ok(()) } else { Err("write true or false".to_owned()) };
    }
    if matches!(arg.get_action(), ArgAction::Count) {
        return one.parse::<u8>().map(drop).map_err(|_| "write a small number".to_owned());
    }
    let option = format!("--{}={one}", arg.get_long().unwrap_or_default());
    let line = std::iter::once("logctl").chain(setting.section).chain([option.as_str()]);
    match plain.clone().try_get_matches_from(line) {
        Err(error) if matches!(error.kind(), ErrorKind::InvalidValue | ErrorKind::ValueValidation) => {
            let told = error.to_string();
            let told = told.lines().next().unwrap_or_default();
            Err(told.strip_prefix("error: ").unwrap_or(told).to_owned())
        }
        // What else is wrong with such a line is not the file's fault.
        _ => Ok(()),
    }
}

fn default_of(arg: Arg, values: Vec<String>) -> Arg {
    if matches!(arg.get_action(), ArgAction::SetTrue) {
        // So that the command line can take it back: --quiet=false.
        return arg
            .action(ArgAction::Set)
            .value_parser(clap::value_parser!(bool))
            .num_args(0..=1)
            .require_equals(true)
            .default_missing_value("true")
            .default_values(values);
    }
    arg.default_values(values)
}
