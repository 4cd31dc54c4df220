"""Pictures of a run folder (RUN/pictures/TAG.json) as a page of HTML."""
import base64
import html


def _is_picture(address):
    return isinstance(address, str) and address.startswith('data:image/')


def page_of(shown):
    title = html.escape(f'{shown.get("title", "")}, iteration {shown.get("iteration", 0)}')
    figures = ''.join(
        f'<figure style="display:inline-block;margin:8px;vertical-align:top"><img src="{html.escape(picture["src"])}" '
        f'style="image-rendering:pixelated;min-width:64px"><figcaption>{html.escape(str(picture.get("caption", "")))}'
        f'</figcaption></figure>' for picture in shown.get('pictures', []) if _is_picture(picture.get('src')))
    return (f'<!DOCTYPE html><html><head><meta charset="utf-8"><title>{title}</title></head>'
            f'<body style="font-family:sans-serif"><h4>{title}</h4>{figures}</body></html>\n')


def images_of(shown):
    """(bytes of a PNG, caption) of each."""
    return [(base64.b64decode(picture['src'].partition(',')[2]), str(picture.get('caption', '')))
            for picture in shown.get('pictures', []) if _is_picture(picture.get('src'))]
