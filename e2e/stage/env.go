package stage

import (
	"fmt"
	"net/url"
	"os"
	"strings"
)

// WriteEnv writes a file for `source` that sets up a shell in which a person works with the stage, and returns its path: the tools, the cluster,
// the addresses, and the passwords of the sample repositories, which are in a file that only its owner can read.
func (s *Stage) WriteEnv(samples *Samples) (string, error) {
	variables, err := s.Env(samples)
	if err != nil {
		return "", err
	}
	tools, err := s.tools()
	if err != nil {
		return "", err
	}
	text := "export KUBECONFIG=" + quoted(s.Cluster.Kubeconfig) + "\nexport PATH=" + quoted(tools) + ":$PATH\n"
	for _, variable := range variables {
		name, value, _ := strings.Cut(variable, "=")
		text += "export " + name + "=" + quoted(value) + "\n"
	}
	path := s.Path("env")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		return "", fmt.Errorf("writing the variables: %w", err)
	}
	return path, nil
}

// Env returns the variables of docs/tour.md.
func (s *Stage) Env(samples *Samples) ([]string, error) {
	passwords := s.Path("git-credentials")
	var lines strings.Builder
	for _, r := range []*Repository{samples.Acme, samples.Platform} {
		u, err := url.Parse(r.URL)
		if err != nil {
			return nil, fmt.Errorf("reading the address of %s: %w", r.Name, err)
		}
		u.User = url.UserPassword(r.User, r.Password)
		lines.WriteString(u.String() + "\n")
	}
	if err := os.WriteFile(passwords, []byte(lines.String()), 0o600); err != nil {
		return nil, fmt.Errorf("writing the passwords: %w", err)
	}
	variables := []string{
		"GIT_URL=" + s.Cluster.Git.Host, "KUBEOP_GIT_URL=" + s.GitURL(), "REGISTRY=" + s.Registry(), "CLUSTER_DIR=" + s.clusterDir(),
		"HOOK_URL=" + strings.TrimSuffix(s.HookURL(""), "/"),
	}
	// Git reads these settings from its environment, so those of the person stay as they are.
	settings := [][2]string{
		{"credential.helper", "store --file=" + passwords}, {"credential.useHttpPath", "true"}, {"user.name", "you"}, {"user.email", "you@example.com"},
	}
	variables = append(variables, fmt.Sprintf("GIT_CONFIG_COUNT=%d", len(settings)))
	for i, setting := range settings {
		variables = append(variables, fmt.Sprintf("GIT_CONFIG_KEY_%d=%s", i, setting[0]), fmt.Sprintf("GIT_CONFIG_VALUE_%d=%s", i, setting[1]))
	}
	return variables, nil
}

func quoted(value string) string { return "'" + strings.ReplaceAll(value, "'", `'\''`) + "'" }
