"""Colours and type of the report, in light and dark.

Purchase options have the colours of Okabe and Ito, which people with any kind of colour blindness
tell apart, and a pattern and a word each.
Source: https://jfly.uni-koeln.de/color/
"""

_LIGHT = """
--page:#f5f6f8;--panel:#fff;--sunk:#eef1f5;--ink:#18212c;--muted:#525d6b;--line:#c9d1db;
--link:#075985;--good:#0b6b45;--good-bg:#e3f4ec;--warn:#7a4a00;--warn-bg:#fdf1d8;
--bad:#a3200d;--bad-bg:#fde9e5;--used:#5a6b80;
--on-demand:#0072b2;--spot:#e69f00;--capacity-block:#009e73;--training-plan:#d55e00;
--odcr:#cc79a7;--baseline:#6b7683;--drain:#18212c;--pattern:rgba(255,255,255,.6)
"""
_DARK = """
--page:#10151b;--panel:#19202a;--sunk:#222b37;--ink:#e9eef4;--muted:#aab6c4;--line:#3b4757;
--link:#7cc4f0;--good:#7fdcae;--good-bg:#12352a;--warn:#f3c56b;--warn-bg:#3a2c0d;
--bad:#ff9d8a;--bad-bg:#421a13;--used:#8fa1b6;
--on-demand:#56b4e9;--spot:#e69f00;--capacity-block:#1fbf91;--training-plan:#e8722a;
--odcr:#d98fb9;--baseline:#93a0b0;--drain:#e9eef4;--pattern:rgba(10,14,20,.42)
"""
_FONT = "system-ui,-apple-system,'Segoe UI',Roboto,'Helvetica Neue',Arial,sans-serif"

_COLOURS = (
    f":root{{color-scheme:light dark;{_LIGHT.strip()}}}\n"
    f"@media (prefers-color-scheme:dark){{:root{{{_DARK.strip()}}}}}\n"
)

_DRAWING = f"""
svg text{{font-family:{_FONT};fill:var(--ink)}}
svg .t{{font-size:12px}}
svg .s{{font-size:11px}}
svg .m{{fill:var(--muted)}}
svg .h{{font-size:15px}}
svg .n{{font-size:13px}}
svg .b{{font-weight:600}}
svg .halo{{paint-order:stroke;stroke:var(--panel);stroke-width:4px;stroke-linejoin:round}}
svg .page{{fill:var(--page)}}
svg .panel{{fill:var(--panel);stroke:var(--line)}}
svg .sunk{{fill:var(--sunk)}}
svg .zone{{fill:var(--sunk);stroke:var(--line);stroke-dasharray:5 4}}
svg .vpc{{fill:none;stroke:var(--good);stroke-width:1.5}}
svg .region{{fill:none;stroke:var(--line);stroke-width:1.5;stroke-dasharray:7 5}}
svg .card{{fill:var(--panel);stroke:var(--line)}}
svg .chip{{fill:var(--sunk);stroke:var(--line)}}
svg .track{{fill:var(--panel);stroke:var(--line)}}
svg .used{{fill:var(--used)}}
svg .over{{fill:var(--bad)}}
svg .grid{{stroke:var(--line);stroke-width:1}}
svg .axis{{stroke:var(--muted);stroke-width:1}}
svg .wire{{stroke:var(--muted);stroke-width:1.5;stroke-dasharray:3 3}}
svg .now{{stroke:var(--bad);stroke-width:1.5}}
svg .edge{{fill:none;stroke:var(--panel);stroke-width:1}}
svg .pattern{{stroke:var(--pattern);stroke-width:1.4;fill:none}}
svg .disk{{fill:var(--sunk);stroke:var(--muted)}}
svg .fill-on-demand{{fill:var(--on-demand)}}
svg .fill-spot{{fill:var(--spot)}}
svg .fill-capacity-block{{fill:var(--capacity-block)}}
svg .fill-training-plan{{fill:var(--training-plan)}}
svg .fill-odcr{{fill:var(--odcr)}}
svg .fill-baseline{{fill:var(--baseline)}}
svg .fill-drain{{fill:var(--drain)}}
"""

DRAWING_STYLE = f"{_COLOURS}{_DRAWING.strip()}"
"""Style sheet of a drawing that stands alone."""

_PAGE = f"""
*{{box-sizing:border-box}}
html{{-webkit-text-size-adjust:100%;scroll-behavior:smooth}}
body{{margin:0;background:var(--page);color:var(--ink);font:16px/1.55 {_FONT}}}
a{{color:var(--link)}}
a:focus-visible,summary:focus-visible,.scroll:focus-visible{{outline:3px solid var(--link);
outline-offset:2px;border-radius:4px}}
.hidden{{position:absolute;width:1px;height:1px;overflow:hidden;clip-path:inset(50%);white-space:nowrap}}
.skip{{position:absolute;left:-9999px}}
.skip:focus{{left:1rem;top:1rem;background:var(--panel);padding:.5rem 1rem;z-index:1}}
h1,h2,p,li,dd{{overflow-wrap:anywhere}}
header,main,footer{{max-width:1208px;margin:0 auto;padding:0 1.5rem}}
header{{padding-top:2.25rem}}
h1{{font-size:2rem;line-height:1.15;margin:0 0 .25rem;letter-spacing:-.01em;
overflow-wrap:anywhere}}
h2{{font-size:1.3rem;line-height:1.3;margin:0 0 .35rem}}
h3{{font-size:1rem;margin:1.5rem 0 .35rem}}
p{{margin:.35rem 0 .75rem;max-width:76ch}}
.lede{{max-width:none;color:var(--muted);margin:0 0 1rem}}
nav ul{{display:flex;flex-wrap:wrap;gap:.25rem 1.1rem;list-style:none;margin:1.25rem 0 0;padding:0;
font-size:.92rem}}
nav a{{display:inline-block;padding:.2rem 0}}
section{{background:var(--panel);border:1px solid var(--line);border-radius:12px;
padding:1.35rem 1.5rem 1.5rem;margin:1.25rem 0}}
.note{{color:var(--muted);font-size:.92rem}}
.verdict{{max-width:none;border-radius:10px;
padding:.85rem 1.1rem;margin:0 0 1rem}}
.verdict strong{{font-size:1.15rem}}
.verdict.good{{background:var(--good-bg);color:var(--good)}}
.verdict.warn{{background:var(--warn-bg);color:var(--warn)}}
.verdict.bad{{background:var(--bad-bg);color:var(--bad)}}
.tiles{{display:grid;grid-template-columns:repeat(auto-fit,minmax(9.5rem,1fr));gap:.75rem;
margin:0 0 1rem;padding:0}}
.tiles div{{background:var(--sunk);border-radius:10px;padding:.7rem .9rem;display:flex;
flex-direction:column-reverse;justify-content:flex-end}}
.tiles dt{{color:var(--muted);font-size:.84rem}}
.tiles dd{{margin:0;font-size:1.25rem;font-weight:600;line-height:1.25;
font-variant-numeric:tabular-nums;overflow-wrap:anywhere}}
.facts{{margin:0;padding-left:1.15rem}}
.facts li{{margin:.3rem 0;overflow-wrap:anywhere}}
.scroll{{position:relative;overflow-x:auto;margin:1.1rem 0 0}}
table{{border-collapse:collapse;width:100%;font-size:.9rem;line-height:1.4}}
caption{{text-align:left;color:var(--muted);font-size:.88rem;padding:0 0 .45rem}}
th,td{{text-align:left;vertical-align:top;padding:.4rem .9rem .4rem 0;
border-bottom:1px solid var(--line)}}
thead th{{color:var(--muted);font-weight:600;font-size:.82rem;white-space:nowrap}}
tbody th{{font-weight:600;min-width:9rem}}
tbody th.w{{white-space:normal}}
table data{{white-space:nowrap}}
td.n,th.n{{text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap}}
caption span{{display:inline-block;max-width:min(76ch,calc(100vw - 4.2rem))}}
td.k{{white-space:nowrap}}
td.l{{min-width:6.6rem}}
td.l span{{white-space:nowrap}}
td.w{{min-width:15rem;overflow-wrap:anywhere}}
tfoot td,tfoot th{{font-weight:600;border-bottom:0}}
tr:last-child>td,tr:last-child>th{{border-bottom:0}}
thead tr:last-child>th{{border-bottom:1px solid var(--line)}}
.tag{{display:inline-block;border-radius:999px;padding:.05rem .6rem;font-size:.82rem;
font-weight:600;white-space:nowrap}}
.tag.good{{background:var(--good-bg);color:var(--good)}}
.tag.warn{{background:var(--warn-bg);color:var(--warn)}}
.tag.bad{{background:var(--bad-bg);color:var(--bad)}}
.tag.plain{{background:var(--sunk);color:var(--muted)}}
.bar{{display:block;width:100%;min-width:5rem;height:.5rem;border-radius:4px;
background:var(--sunk);border:1px solid var(--line);overflow:hidden;margin-top:.4rem}}
.bar i{{display:block;height:100%;background:var(--used)}}
.bar.bad i{{background:var(--bad)}}
.bar.warn i{{background:var(--spot)}}
details{{margin-top:.9rem}}
summary{{cursor:pointer;font-weight:600;font-size:.92rem;padding:.2rem 0}}
code,kbd,pre{{font-family:ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace;
font-size:.9em}}
code{{overflow-wrap:anywhere}}
svg{{display:block;max-width:100%;height:auto}}
.medium,.narrow{{display:none}}
footer{{color:var(--muted);font-size:.88rem;padding-bottom:3rem}}
@media (max-width:1080px){{
.wide{{display:none}}
.medium{{display:block;margin:0 auto}}
.tiles{{grid-template-columns:repeat(3,1fr)}}
table{{width:max-content;min-width:100%}}
td,th{{max-width:17rem}}
tbody th{{white-space:normal;max-width:11rem;overflow-wrap:anywhere;min-width:6rem}}
}}
@media (max-width:700px){{
header,main,footer{{padding-left:.9rem;padding-right:.9rem}}
header{{padding-top:1.5rem}}
h1{{font-size:1.6rem}}
section{{padding:1rem .95rem 1.1rem}}
.medium{{display:none}}
.narrow{{display:block;margin:0 auto}}
.tiles{{grid-template-columns:repeat(2,1fr)}}
.tiles dd{{font-size:1.2rem}}
}}
@media print{{
@page{{margin:14mm}}
:root{{{_LIGHT.strip()}}}
body{{background:#fff;font-size:10.5pt}}
nav,.skip{{display:none}}
header,main,footer{{max-width:none;padding:0}}
section{{border:0;padding:0;margin:0 0 1.4rem;break-inside:auto}}
h2,h3,caption{{break-after:avoid}}
tr,svg,.tiles,.verdict{{break-inside:avoid}}
.wide,.narrow{{display:none}}
.medium{{display:block;width:auto;max-width:100%;max-height:238mm;margin:0 auto}}
tfoot{{display:table-row-group}}
table{{width:100%}}
td,th{{max-width:none}}
tbody th{{max-width:none;min-width:0;overflow-wrap:normal}}
.scroll{{overflow:visible}}
table,thead th,caption,.tag,.note,summary{{font-size:8.5pt}}
tbody tr:first-child{{break-before:avoid}}
details::details-content{{content-visibility:visible;height:auto}}
td.w{{min-width:0}}
td.l{{min-width:4.6rem}}
caption span{{max-width:none}}
thead th,tbody th,td.n,th.n{{white-space:normal}}
th,td{{padding-right:.55rem}}
*{{-webkit-print-color-adjust:exact;print-color-adjust:exact}}
}}
"""

PAGE_STYLE = f"{DRAWING_STYLE}\n{_PAGE.strip()}"
"""Style sheet of the page, with that of its drawings."""
