package sops

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"

	sopslib "github.com/getsops/sops/v3"
	"github.com/getsops/sops/v3/config"
	"github.com/getsops/sops/v3/stores"
	"github.com/getsops/sops/v3/stores/dotenv"
	"github.com/getsops/sops/v3/stores/ini"
	"github.com/getsops/sops/v3/stores/json"
	"github.com/getsops/sops/v3/stores/yaml"
	yamlv3 "go.yaml.in/yaml/v3"

	"github.com/kubeop/kubeop/delivery/decrypt"
)

// store has the library's reader and writer of a format, and a check that runs before them: the library follows aliases, and recurses as
// deep as a file is nested.
type store struct {
	check func([]byte) error
	sopslib.PlainFileLoader
	sopslib.PlainFileEmitter
	metadata stores.MetadataOpts
}

func storeOf(in decrypt.Format) store {
	switch in {
	case decrypt.YAML:
		is := yaml.NewStore(&config.YAMLStoreConfig{})
		return store{plainYAML, is, is, stores.MetadataOpts{Flatten: stores.MetadataFlattenNone}}
	case decrypt.Env:
		is := dotenv.NewStore(&config.DotenvStoreConfig{})
		return store{anything, is, is, stores.MetadataOpts{Flatten: stores.MetadataFlattenFull}}
	case decrypt.INI:
		is := ini.NewStore(&config.INIStoreConfig{})
		return store{fewLines, is, is, stores.MetadataOpts{Flatten: stores.MetadataFlattenBelowTop, EscapeNewlines: true}}
	}
	of := store{shallowJSON, json.NewStore(&config.JSONStoreConfig{}), jsonWriter{}, stores.MetadataOpts{Flatten: stores.MetadataFlattenNone}}
	if in == decrypt.Binary {
		of.PlainFileEmitter = json.NewBinaryStore(&config.JSONBinaryStoreConfig{})
	}
	return of
}

// load parses an encrypted file. It leaves out the library's errors about the syntax, which may quote the file.
func load(in decrypt.Format, data []byte) (*sopslib.Tree, error) {
	from := storeOf(in)
	if err := from.check(data); err != nil {
		return nil, err
	}
	branches, err := from.LoadPlainFile(data)
	if err != nil {
		return nil, errShape
	}
	branches, about, err := stores.ExtractMetadata(branches, from.metadata)
	switch {
	case errors.Is(err, sopslib.MetadataNotFound):
		return nil, errShape
	case err != nil:
		return nil, fmt.Errorf("what SOPS wrote about it, below sops, is wrong: %.200q: %w", err.Error(), decrypt.ErrDamaged)
	}
	return &sopslib.Tree{Branches: branches, Metadata: about}, nil
}

// emit encodes the decrypted content.
func emit(in decrypt.Format, branches sopslib.TreeBranches) ([]byte, error) {
	plain, err := storeOf(in).EmitPlainFile(branches)
	if errors.Is(err, json.BinaryStoreEmitPlainError) {
		return nil, fmt.Errorf("it has no text data: %w", decrypt.ErrDamaged)
	}
	if err != nil {
		return nil, errShape // The library may quote the value.
	}
	return plain, nil
}

func anything([]byte) error { return nil }

func fewLines(data []byte) error {
	if bytes.Count(data, []byte("\n")) > maxINILines {
		return fmt.Errorf("is an INI file of more than %d lines: %w", maxINILines, decrypt.ErrDamaged)
	}
	return nil
}

// shallowJSON refuses JSON that is nested too deep.
func shallowJSON(data []byte) error {
	depth, quoted := 0, false
	for i := 0; i < len(data); i++ {
		switch c := data[i]; {
		case c == '"':
			quoted = !quoted
		case quoted && c == '\\':
			i++
		case quoted:
		case c == '{', c == '[':
			if depth++; depth > maxDepth {
				return errShape
			}
		case c == '}', c == ']':
			depth--
		}
	}
	return nil
}

// plainYAML refuses YAML that is nested too deep, and aliases, which SOPS expands when it encrypts.
func plainYAML(data []byte) error {
	decoder := yamlv3.NewDecoder(bytes.NewReader(data))
	for {
		var document yamlv3.Node
		err := decoder.Decode(&document)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil || !plainNode(&document, -1) {
			return errShape
		}
	}
}

func plainNode(node *yamlv3.Node, depth int) bool {
	if depth > maxDepth || node.Kind == yamlv3.AliasNode {
		return false
	}
	for _, inner := range node.Content {
		if !plainNode(inner, depth+1) {
			return false
		}
	}
	return true
}

// checkMetadata refuses metadata above the limits. If SOPS did not set how many of several key groups are needed, it sets that to all.
func checkMetadata(about *sopslib.Metadata) error {
	groups := len(about.KeyGroups)
	if groups > maxGroups {
		return fmt.Errorf("has more than %d key groups: %w", maxGroups, decrypt.ErrKeys)
	}
	recipients := map[string]int{}
	for _, group := range about.KeyGroups {
		for _, key := range group {
			kind := key.TypeToIdentifier()
			if recipients[kind]++; recipients[kind] > maxRecipients {
				return fmt.Errorf("is encrypted for more than %d keys of a kind: %w", maxRecipients, decrypt.ErrKeys)
			}
		}
	}
	if about.ShamirThreshold == 0 {
		about.ShamirThreshold = groups
	}
	if groups > 1 && (about.ShamirThreshold < 2 || about.ShamirThreshold > groups) {
		return fmt.Errorf("its shamir_threshold is not from 2 to %d, the number of its key groups: %w", groups, decrypt.ErrDamaged)
	}
	for field, expression := range map[string]string{
		"encrypted_regex": about.EncryptedRegex, "unencrypted_regex": about.UnencryptedRegex,
		"encrypted_comment_regex": about.EncryptedCommentRegex, "unencrypted_comment_regex": about.UnencryptedCommentRegex,
	} {
		if len(expression) > maxRegex {
			return fmt.Errorf("its %s has more than %d bytes: %w", field, maxRegex, decrypt.ErrDamaged)
		}
		if _, err := regexp.Compile(expression); err != nil {
			return fmt.Errorf("its %s is none: %w", field, decrypt.ErrDamaged)
		}
	}
	return nil
}
