package server

import (
	"fmt"

	"github.com/kubeop/kubeop/api/client"
	"github.com/kubeop/kubeop/cmd/kubeop/server/credentials"
	"github.com/kubeop/kubeop/internal/config"
)

// open returns a client of the manager that settings name, and the token that it sends. It sends nothing yet.
func open(of config.CommandLine) (*client.Client, string, error) {
	token, err := credentials.Token(of.Token, of.TokenFile)
	if err != nil {
		return nil, "", err
	}
	roots, err := credentials.Roots(of.ServerCA)
	if err != nil {
		return nil, "", err
	}
	api, err := client.New(client.Options{Server: of.Server, Token: token, Roots: roots})
	if err != nil {
		return nil, "", fmt.Errorf("--server: %w", err)
	}
	return api, token, nil
}
