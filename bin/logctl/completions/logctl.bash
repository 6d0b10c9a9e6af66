# Completion of logctl for bash. It asks logctl itself what fits, so it need not be made again with a new version.
_logctl() {
    # A file name or an offset range may hold characters at which bash breaks words (: = @): put such words together.
    local words=() index=0 rest=$COMP_LINE i word blanks current=$2
    for ((i = 0; i < ${#COMP_WORDS[@]}; i++)); do
        word=${COMP_WORDS[i]}
        blanks=${rest%%[![:blank:]]*}
        rest=${rest#"$blanks"}
        rest=${rest#"$word"}
        # Behind such a character the current word is empty, and the character a word.
        if ((i == COMP_CWORD)) && [[ -n $current || $word != [:=@]* ]]; then
            word=$current
        fi
        if ((i == 0)) || [[ -n $blanks || -z $word && $i -eq $COMP_CWORD && $COMP_LINE == *[[:blank:]] ]]; then
            words+=("$word")
        elif ((i <= COMP_CWORD)); then
            words[${#words[@]} - 1]+=$word
        fi
        if ((i == COMP_CWORD)); then
            index=$((${#words[@]} - 1))
        fi
    done
    # An open quote is no part of the word; bash sets it itself.
    local whole=${words[index]#[\"\']}
    words[index]=$whole
    local prefix=${whole%"$current"} quote='' candidate
    case $current in [\"\']*) quote=yes ;; esac
    # The command as it was typed, by its alias or path.
    local command=${BASH_ALIASES[$1]:-$1}
    COMPREPLY=()
    while IFS= read -r candidate; do
        candidate=${candidate#"$prefix"}
        if [[ -z $quote && $candidate == *[!A-Za-z0-9_.,:=@%+/~^-]* ]]; then
            printf -v candidate %q "$candidate"
        fi
        COMPREPLY+=("$candidate")
    done < <(LOGCTL_COMPLETE=bash _LOGCTL_COMPLETE_INDEX=$index $command -- "${words[@]}" 2>/dev/null)
    if [[ ${#COMPREPLY[@]} -gt 0 && ${COMPREPLY[0]} == *[=/:@] ]]; then
        compopt -o nospace 2>/dev/null
    fi
}
complete -o nosort -F _logctl logctl
