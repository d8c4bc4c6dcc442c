package sources

import (
	"maps"
	"slices"
	"testing"
	"testing/fstest"
)

// ChartYAML is the Chart.yaml of a chart called web.
const ChartYAML = "apiVersion: v2\nname: web\nversion: 1.2.3\nappVersion: \"9\"\n"

// ChartFolder returns the folder of a chart, with ChartYAML. A file without text is left out.
func ChartFolder(files map[string]string) fstest.MapFS {
	out := fstest.MapFS{"Chart.yaml": {Data: []byte(ChartYAML)}}
	for name, text := range files {
		out[name] = &fstest.MapFile{Data: []byte(text)}
		if text == "" {
			delete(out, name)
		}
	}
	return out
}

// ChartArchive returns the archive of a chart.
func ChartArchive(t testing.TB, name string, files map[string]string) []byte {
	t.Helper()
	var entries []Entry
	for _, file := range slices.Sorted(maps.Keys(files)) {
		entries = append(entries, Entry{Name: name + "/" + file, Text: files[file]})
	}
	return TarGz(t, entries...)
}
