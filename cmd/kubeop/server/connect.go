package server

import (
	"github.com/kubeop/kubeop/api/client"
	"github.com/kubeop/kubeop/internal/config"
)

// Manager is the management API of a manager, for what is not read from a target.Source.
type Manager struct {
	*client.Client
	// URL is where it is, and Token who asks.
	URL, Token string
}

// Connect returns the manager that settings name. It sends nothing yet.
func Connect(of config.CommandLine) (*Manager, error) {
	api, token, err := open(of)
	if err != nil {
		return nil, err
	}
	return &Manager{Client: api, URL: of.Server, Token: token}, nil
}

// Explained returns an error of a request with what to do about it.
func (m *Manager) Explained(err error) error { return (&source{url: m.URL}).explained(err) }
