"""Configuration of installed packages: Hydra finds it where their entry points say."""

from hydra.core.config_search_path import ConfigSearchPath
from hydra.plugins.search_path_plugin import SearchPathPlugin

from sim.help.pages import plugin_folders


class MoldsimSearchPath(SearchPathPlugin):
    """Adds packages that an entry point of the group ``moldsim.plugins`` names."""

    def manipulate_search_path(self, search_path: ConfigSearchPath) -> None:
        """Put them behind the program's own, whose options they cannot replace."""
        for package in plugin_folders():
            search_path.append(f"moldsim.plugins:{package}", f"pkg://{package}")
