_moldsim() {
    local line="${COMP_LINE:0:COMP_POINT}" IFS=$'\n'
    local cur="${line##* }" before=""
    local found=($(moldsim completion --line "${line#* }" 2>/dev/null))
    [[ "$cur" == *=* && "$COMP_WORDBREAKS" == *=* ]] && before="${cur%%=*}="
    COMPREPLY=("${found[@]#"$before"}")
    [[ ${#found[@]} -eq 0 ]] && COMPREPLY=($(compgen -f -- "${cur##*=}"))
    [[ "${found[0]}" == *= ]] && compopt -o nospace 2>/dev/null
    return 0
}
complete -F _moldsim moldsim
