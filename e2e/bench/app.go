package main

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io/fs"
	"path"
	"time"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/e2e/stage"
)

//go:embed chart
var chartFiles embed.FS

const (
	chartName    = "reference"
	chartVersion = "0.1.0"
)

// app is one of the measured apps, of any kind.
type app struct {
	Name string
	// Turn is in the values. A different turn is an upgrade.
	Turn int
	// Interval is the pause between two reconciliations.
	Interval time.Duration
	// Padding is the size of the additional values in bytes.
	Padding int
}

// input identifies the desired app, as a driver reads it from the app's object.
func (a app) input() string { return inputOf(a.Turn, a.Interval) }

func inputOf(turn int, interval time.Duration) string {
	return fmt.Sprintf("turn %d every %s", turn, interval)
}

// values are the values of the app's release. The padding compresses as badly as secrets and addresses do.
func (a app) values() map[string]any {
	padding := map[string]any{}
	for left := a.Padding; left > 0; {
		sum := sha256.Sum256(fmt.Appendf(nil, "%s %d", a.Name, len(padding)))
		key, value := fmt.Sprintf("setting%03d", len(padding)), hex.EncodeToString(sum[:])
		padding[key] = value[:min(len(value), left)]
		left -= len(value)
	}
	return map[string]any{"turn": a.Turn, "padding": padding}
}

// appTypes are the types of app by the name of the flag.
var appTypes = map[string]v1alpha1.AppType{"helm": v1alpha1.AppHelm, "git": v1alpha1.AppGit, "raw": v1alpha1.AppRaw}

// turnFolder is the folder of a turn's manifests. Its name contains the turn.
func turnFolder(turn int) string { return fmt.Sprintf("turn-%d", turn) }

// turnOf returns the turn of a path that begins with its folder, or 0.
func turnOf(path string) int {
	var turn int
	_, _ = fmt.Sscanf(path, "turn-%d", &turn) // Other paths have no turn.
	return turn
}

// newApps returns n apps of the first turn.
func newApps(n, padding int) []app {
	apps := make([]app, n)
	for i := range apps {
		apps[i] = app{Name: fmt.Sprintf("app-%04d", i), Turn: 1, Interval: restInterval, Padding: padding}
	}
	return apps
}

func inputs(apps []app) map[string]string {
	byName := map[string]string{}
	for _, a := range apps {
		byName[a.Name] = a.input()
	}
	return byName
}

// writeChart writes the reference chart into a folder of a clone.
func writeChart(r *stage.Repository, folder string) error {
	return fs.WalkDir(chartFiles, "chart", func(name string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		content, err := chartFiles.ReadFile(name)
		if err != nil {
			return err
		}
		return r.Write(path.Join(folder, name), content)
	})
}

// turnIn returns the turn in the values of an object, or 0.
func turnIn(values []byte) int {
	var v struct {
		Turn int `json:"turn"`
	}
	_ = json.Unmarshal(values, &v) // Values that are no object have no turn.
	return v.Turn
}
