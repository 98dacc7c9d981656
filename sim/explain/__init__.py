"""Why a job waited: its run is replayed with somebody who looks on."""
