#compdef moldsim
_moldsim() {
    local -a found
    found=("${(@f)$(moldsim completion --line "${(j: :)words[2,CURRENT]}" 2>/dev/null)}")
    [[ -n "${found[1]}" ]] && compadd -Q -S '' -- "${found[@]}" || _files
}
compdef _moldsim moldsim
