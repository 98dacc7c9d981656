function __moldsim_words
    moldsim completion --line (commandline -cp | string replace -r '^\S+\s' '') 2>/dev/null
end
complete -c moldsim -a '(__moldsim_words)'
