package server

import (
	"fmt"

	"github.com/kubeop/kubeop/api/client"
	"github.com/kubeop/kubeop/internal/config"
)

// Manager is the management API of a manager, for what is not read from a target.Source.
type Manager struct {
	*client.Client
	// URL is where it is, and Token who asks.
	URL, Token string
}

// Connect returns the manager that settings name, for a command that needs one. does says what only the management API does, for the error
// if no manager is named. It sends nothing yet.
func Connect(settings func() (config.CommandLine, error), does string) (*Manager, error) {
	of, err := settings()
	switch {
	case err != nil:
		return nil, err
	case of.Server == "":
		return nil, fmt.Errorf("this needs a manager, whose management API %s: name it with --server or KUBEOP_SERVER", does)
	}
	api, token, err := open(of)
	if err != nil {
		return nil, err
	}
	return &Manager{Client: api, URL: of.Server, Token: token}, nil
}

// Explained returns an error of a request with what to do about it.
func (m *Manager) Explained(err error) error { return (&source{url: m.URL}).explained(err) }
