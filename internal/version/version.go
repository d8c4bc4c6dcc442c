// Package version has the version of this build.
package version

import (
	"encoding/json"
	"net/http"
	"runtime"
)

// Version and Commit are set by the linker.
var (
	Version = "dev"
	Commit  = "unknown"
)

// Handler returns a handler that answers with the version and the commit as JSON.
func Handler() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		// It fails only if the client disconnected.
		_ = json.NewEncoder(w).Encode(map[string]string{
			"service": "kubeop-operator", "version": Version, "commit": Commit, "go": runtime.Version(),
		})
	})
}
