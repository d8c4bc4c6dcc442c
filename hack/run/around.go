package main

import (
	"fmt"
	"os"
	"strings"
	"text/template"
)

// guide explains how to look around.
var guide = template.Must(template.New("guide").Parse(`
It stays up until Ctrl-C. In another shell:

  export KUBECONFIG={{.Kubeconfig}} PATH={{.Bin}}:$PATH
  alias kubectl='cluster kubectl'

  kubectl get repositories,tenants          # what Git declares
  kubectl get projects,apps -A              # TYPE, READY, REVISION, STATUS
  kubectl describe app web -n kubeop-acme-shop
  helm list -A                              # the app api is a real release
  tail -f {{.Log}}

Ship something yourself. The user is {{.User}}, the password is in {{.PasswordFile}}:

  git clone {{.URL}}
`))

// showAround prints the guide and writes the password to a file that only its owner can read.
func (r *tour) showAround() error {
	acme := r.samples.Acme
	file := r.stage.Path("acme.password")
	if err := os.WriteFile(file, []byte(acme.Password+"\n"), 0o600); err != nil {
		return fmt.Errorf("writing the password: %w", err)
	}
	bin := os.Getenv("KUBEOP_CLUSTER_BIN")
	return guide.Execute(os.Stdout, map[string]string{
		"Kubeconfig": r.stage.Cluster.Kubeconfig, "Bin": bin[:strings.LastIndex(bin, "/")], "Log": r.stage.Path("operator.log"),
		"User": acme.User, "PasswordFile": file, "URL": acme.URL,
	})
}
