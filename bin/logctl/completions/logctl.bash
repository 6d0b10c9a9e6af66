# Completion of logctl for bash. It asks logctl itself what fits, so it need not be made again with a new version.
_logctl() {
    # An offset range may hold characters at which bash breaks words (: = @): put such words together again.
    local words=() index=0 rest=$COMP_LINE before=0 i word blanks
    for ((i = 0; i < ${#COMP_WORDS[@]}; i++)); do
        word=${COMP_WORDS[i]}
        blanks=${rest%%[![:blank:]]*}
        rest=${rest:${#blanks}}
        rest=${rest#"$word"}
        before=$((before + ${#blanks}))
        # Of the word under the cursor, what stands before it.
        if ((i == COMP_CWORD)); then
            word=${word:0:COMP_POINT > before ? COMP_POINT - before : 0}
        fi
        if ((i == 0)) || [[ -n $blanks ]]; then
            words+=("$word")
        elif ((i <= COMP_CWORD)); then
            words[${#words[@]} - 1]+=$word
        fi
        before=$((before + ${#COMP_WORDS[i]}))
        if ((i == COMP_CWORD)); then
            index=$((${#words[@]} - 1))
        fi
    done
    local whole=${words[index]} current=$2 quote='' candidate
    case $whole in
        [\"\']*) quote=yes whole=${whole:1} ;;
        *) whole=${whole//\\/} current=${current//\\/} ;;
    esac
    words[index]=$whole
    # bash replaces only what it takes for the word.
    local prefix=${whole%"$current"}
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
    # The word goes on: behind a directory, and where a value is wanted.
    if [[ ${#COMPREPLY[@]} -eq 1 && ${COMPREPLY[0]} == *[=/:@] ]]; then
        compopt -o nospace 2>/dev/null
    fi
}
complete -o nosort -F _logctl logctl
