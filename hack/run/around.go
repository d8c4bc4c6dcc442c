package main

import (
	"os"
	"path/filepath"
	"text/template"
)

// guide explains how to look around, and has all that a second tenant needs. docs/tour.md explains the same commands.
var guide = template.Must(template.New("guide").Parse(`
It stays up until Ctrl-C. In another shell:

  . {{.Env}}

  kubectl get repositories,tenants          # what Git declares
  kubectl get projects,apps -A              # TYPE, READY, REVISION, STATUS
  kubectl describe app web -n kubeop-acme-shop
  helm list -A                              # the app api is a real release
  tail -f {{.Log}}

Read the same through the management API ({{.Manager}}/docs is for people). The code is for the first administrator, for an hour and once:

  curl -s -X POST {{.Manager}}/v1/setup -H 'Content-Type: application/json' -d '{"name": "me", "code": "{{.Code}}"}'
  curl -s {{.Manager}}/v1/apps/acme/shop -H "Authorization: Bearer kubeop_…"    # the token of the answer before
  curl -N "{{.Manager}}/v1/apps/acme/shop?watch=1" -H "Authorization: Bearer kubeop_…"

Ship something yourself, as the team acme or as an administrator. Git finds the passwords by itself:

  git clone $GIT_URL/acme.git
  git clone $GIT_URL/platform.git

A second team, beta. Make its repository, give kubeop the credentials, and declare it in the platform repository:

  cluster repo create beta --dir $CLUSTER_DIR --user dev --password beta-password --webhook $HOOK_URL/beta --webhook-secret beta-key
  kubectl create secret generic beta-git -n kubeop-system --from-literal=username=dev --from-literal=password=beta-password
  kubectl create secret generic beta-hook -n kubeop-system --from-literal=token=beta-key

  platform/tenants/beta/tenant.yaml:
    apiVersion: paas.kubeop.io/v1alpha1
    kind: Tenant
    metadata: {name: beta}
    spec:
      owners: [{kind: User, name: ben, role: admin}]
      repository:
        url: {{.GitURL}}/beta.git
        secretRef: {name: beta-git}
        hookSecretRef: {name: beta-hook}

  git -C platform add . && git -C platform commit -m "Welcome beta" && git -C platform push
  kubectl wait tenant beta --for=condition=Ready
  git clone {{.GitURL}}/beta.git            # user dev, password beta-password
  kubectl get projects -n kubeop-beta --as ben   # as an owner of beta; an image for apps is {{.Registry}}/hello:v1

docs/tour.md leads through all of this in 15 minutes.
`))

// showAround prints the guide, and writes the file that sets up a shell for it.
func (r *tour) showAround() error {
	env, err := r.stage.WriteEnv(r.samples)
	if err != nil {
		return err
	}
	if here, err := os.Getwd(); err == nil {
		if relative, err := filepath.Rel(here, env); err == nil {
			env = relative
		}
	}
	return guide.Execute(os.Stdout, map[string]string{
		"Env": env, "Log": r.stage.Path("operator.log"), "Manager": r.manager.URL, "Code": r.manager.Code, "GitURL": r.stage.GitURL(), "Registry": r.stage.Cluster.Registry.Host,
	})
}
