"""The TLS contexts of links. Both sides must have a certificate signed by the cluster's own CA.

Host names are not checked, because members may move to other hosts, and the CA signs only members.
"""

import ssl

from elasticq.peers.settings import PeerSettings, PeerSettingsError


def server_context(settings: PeerSettings) -> ssl.SSLContext | None:
    return _context(settings, ssl.PROTOCOL_TLS_SERVER)


def client_context(settings: PeerSettings) -> ssl.SSLContext | None:
    return _context(settings, ssl.PROTOCOL_TLS_CLIENT)


def _context(settings: PeerSettings, side: int) -> ssl.SSLContext | None:
    """Return a TLS context, None without TLS. Raise PeerSettingsError if the files cannot be used."""
    if not settings.has_tls:
        return None
    context = ssl.SSLContext(side)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_REQUIRED
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    try:
        context.load_cert_chain(settings.tls_cert, settings.tls_key)
        context.load_verify_locations(settings.tls_ca)
    except OSError as error:
        raise PeerSettingsError(
            f"TLS files {settings.tls_cert}, {settings.tls_key}, {settings.tls_ca}: {error}"
        ) from error
    return context
