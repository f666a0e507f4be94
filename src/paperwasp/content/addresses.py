"""The addresses at which the content clusters of applications are served."""


def address_of(application_name: str, cluster_id: str) -> str:
    """The address of a content cluster of an application (`tenant.application.instance`)."""
    return f"content/{application_name}/{cluster_id}"
