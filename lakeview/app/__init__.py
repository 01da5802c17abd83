"""The only home of streamlit below pages/: selection, caches, errors and the pieces every page is drawn with."""
