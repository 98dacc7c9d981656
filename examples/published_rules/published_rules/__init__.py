"""Published rules of processor allocation for moldsim, each a preset of its own."""
