package offline

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/yaml"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/cmd/kubeop/call"
	"github.com/kubeop/kubeop/cmd/kubeop/target"
	"github.com/kubeop/kubeop/delivery/encrypt"
	"github.com/kubeop/kubeop/gitops/commit"
	"github.com/kubeop/kubeop/gitops/layout"
)

// Add returns the command add.
func Add(c *call.Call) *cobra.Command {
	command := &cobra.Command{
		Use:   "add",
		Short: "Add an encrypted Secret to a repository",
		Long:  `Add something to a repository. Nothing is overwritten. With --commit or --pull-request, it is committed and pushed.`,
		Example: `  # A Secret of the project shop, encrypted for the key in .sops.yaml
  kubeop add secret database --project shop --from-file password=password.txt

  # The key is named here
  kubeop add secret database --project shop --from-literal user=web --age age1g2k6l9rx35q0rfu0nxxxtwrg4uazdt9d2es82twzxm6z7rwd9y2q6ekz6c`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	command.AddCommand(addSecret(c))
	return command
}

// newSecret is a Secret that is added.
type newSecret struct {
	destination
	app, keys       string
	kind            string
	literals, files []string
	recipients      []string
	// root is the folder of the repository, and folder that of the manifests in it.
	root, folder string
	// appFile is the file of the app, and appText what a new one has.
	appFile, appText string
}

func addSecret(c *call.Call) *cobra.Command {
	s := &newSecret{destination: destination{Call: c}}
	command := &cobra.Command{
		Use:   "secret NAME --project PROJECT",
		Short: "Write a Secret, encrypted with SOPS, beside the app that delivers it",
		Long: `Write a Secret into the repository that the current folder is in, encrypted in the format of SOPS. The app that delivers it is of type Raw with a
folder; it is written, too, if there is none. kubeop decrypts the file with the age key in the Secret of the app's decryption.secretRef, which an
owner creates once: see docs/cookbook.md.

The file is encrypted for the recipients of --age, or else of the first rule of .sops.yaml that matches its path. Only people with a key can
change it later, with the program sops.`,
		Example: `  # A password that is in no history of a shell
  kubeop add secret database --project shop --from-file password=/dev/stdin

  # Delivered by another app than "secrets"
  kubeop add secret tls --project shop --app ingress --type kubernetes.io/tls --from-file tls.crt --from-file tls.key`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return s.run(cmd.Context(), args[0]) },
	}
	s.addFlags(command)
	flags := command.Flags()
	flags.StringVar(&s.app, "app", "secrets", "app of the project that delivers the Secret")
	flags.StringArrayVar(&s.literals, "from-literal", nil, "KEY=VALUE of the Secret; can be given again")
	flags.StringArrayVar(&s.files, "from-file", nil, "[KEY=]FILE with a value of the Secret; can be given again")
	flags.StringVar(&s.kind, "type", "", "type of the Secret, such as kubernetes.io/tls (default: Opaque)")
	flags.StringArrayVar(&s.recipients, "age", nil, "age recipient; can be given again (default: those of .sops.yaml)")
	flags.StringVar(&s.keys, "key-secret", "sops", "Secret with the age key in the project's namespace, for a new app; empty for the key that the tenant has with sops: Generated")
	return command
}

func (s *newSecret) run(ctx context.Context, name string) error {
	if problems := validation.IsDNS1123Subdomain(name); len(problems) > 0 {
		return fmt.Errorf("%q cannot be the name of a Secret: %s", name, problems[0])
	}
	if s.Project == "" {
		return errors.New("--project is required: the project of the Secret")
	}
	data, err := s.data()
	if err != nil {
		return err
	}
	if err := s.find(); err != nil {
		return err
	}
	place := path.Join(s.folder, name+".yaml")
	if err := s.recipientsFor(place); err != nil {
		return err
	}
	secret := encrypt.Secret{Name: name, Type: s.kind, Data: data}
	text, err := secret.Encrypted(s.recipients, s.Clock.Now())
	if err != nil {
		return err
	}
	edits := []commit.Edit{commit.Create{File: place, Content: text}}
	if s.appText != "" {
		edits = append(edits, commit.Create{File: s.appFile, Content: []byte(s.appText)})
	}
	return s.write(ctx, change{root: s.root, place: s.appFile, title: "Add Secret " + name + " to project " + s.Project, edits: edits})
}

// data reads the values.
func (s *newSecret) data() (map[string][]byte, error) {
	data := map[string][]byte{}
	add := func(key string, value []byte) error {
		if problems := validation.IsConfigMapKey(key); len(problems) > 0 {
			return fmt.Errorf("%q cannot be a key of a Secret: %s", key, problems[0])
		}
		if _, twice := data[key]; twice {
			return fmt.Errorf("the key %s is given twice", key)
		}
		data[key] = value
		return nil
	}
	for _, literal := range s.literals {
		key, value, ok := strings.Cut(literal, "=")
		if !ok {
			// The text may be the secret itself.
			return nil, errors.New("--from-literal: write KEY=VALUE")
		}
		if err := add(key, []byte(value)); err != nil {
			return nil, err
		}
	}
	for _, given := range s.files {
		key, file, ok := strings.Cut(given, "=")
		if !ok {
			key, file = filepath.Base(given), given
		}
		value, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("--from-file: %w", err)
		}
		if err := add(key, value); err != nil {
			return nil, err
		}
	}
	if len(data) == 0 {
		return nil, errors.New("a Secret needs values: --from-literal KEY=VALUE or --from-file [KEY=]FILE")
	}
	return data, nil
}

// find finds the folder of the app that delivers the Secret, or prepares a new app.
func (s *newSecret) find() error {
	root, err := topFolder(".")
	if err != nil {
		return err
	}
	s.root = root
	platform := (&validate{Call: s.Call}).ofPlatform(root)
	full := s.Project + "/" + s.app
	if platform {
		if s.Tenant == "" {
			return errors.New("--tenant is required in the platform repository: a tenant that is declared there with its projects, or platform")
		}
		full = s.Tenant + "/" + full
	}
	if s.appFile, err = placeOf(target.App, full, platform); err != nil {
		return err
	}
	project := path.Join(path.Dir(path.Dir(path.Dir(s.appFile))), layout.ProjectFile)
	if _, err := os.Stat(filepath.Join(root, filepath.FromSlash(project))); err != nil {
		return fmt.Errorf("there is no project %s here: %w", s.Project, err)
	}
	text, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(s.appFile)))
	if errors.Is(err, fs.ErrNotExist) {
		return s.newApp()
	}
	if err != nil {
		return err
	}
	var app v1alpha1.App
	if err := yaml.Unmarshal(text, &app); err != nil {
		return fmt.Errorf("%s: %w", s.appFile, err)
	}
	switch raw := app.Spec.Raw; {
	case raw == nil || raw.Path == "":
		return fmt.Errorf("%s delivers no folder of manifests: name an app of type Raw with raw.path as --app, or one that is written then", s.appFile)
	case raw.Decryption == nil:
		return fmt.Errorf("%s decrypts nothing: add raw.decryption, with provider sops, and the secretRef of the Secret with the key unless it is the tenant's own", s.appFile)
	default:
		s.folder = path.Join(path.Dir(s.appFile), raw.Path)
	}
	return nil
}

// newApp prepares an app that delivers the folder.
func (s *newSecret) newApp() error {
	s.folder = path.Join(path.Dir(s.appFile), "manifests")
	decryption := fields{"provider": "sops"}
	if s.keys != "" {
		decryption["secretRef"] = fields{"name": s.keys}
	}
	text, err := yaml.Marshal(fields{
		"apiVersion": v1alpha1.GroupVersion.String(), "kind": v1alpha1.AppKind, "metadata": fields{"name": s.app},
		"spec": fields{"type": string(v1alpha1.AppRaw), "raw": fields{"path": "manifests", "decryption": decryption}},
	})
	s.appText = string(text)
	return err
}

// recipientsFor finds the recipients for a file, unless flags name them.
func (s *newSecret) recipientsFor(place string) error {
	if len(s.recipients) > 0 {
		return nil
	}
	rules, err := os.ReadFile(filepath.Join(s.root, encrypt.RulesFile))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if s.recipients, err = encrypt.Recipients(rules, place); err != nil {
		return err
	}
	if len(s.recipients) == 0 {
		return fmt.Errorf("no rule of %s is for %s: name the public key of age-keygen with --age", encrypt.RulesFile, place)
	}
	return nil
}
