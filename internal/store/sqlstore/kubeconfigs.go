package sqlstore

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/kubeop/kubeop/internal/store"
	"github.com/kubeop/kubeop/internal/store/database"
)

const kubeconfigColumns = `id, name, tenant, tenant_uid, project, role, secret_uid, life, created, created_by, in_groups, expires`

func readKubeconfig(scan database.Scan) (k store.Kubeconfig, err error) {
	var life, created, expires int64
	var groups string
	err = scan(&k.ID, &k.Name, &k.Tenant, &k.TenantUID, &k.Project, &k.Role, &k.SecretUID, &life, &created, &k.CreatedBy, &groups, &expires)
	if err == nil {
		err = json.Unmarshal([]byte(groups), &k.Groups)
	}
	k.Life, k.Created, k.Expires = time.Duration(life)*time.Microsecond, fromMicros(created), fromMicros(expires)
	return k, err
}

// BeginKubeconfig implements store.Kubeconfigs.
func (s *Store) BeginKubeconfig(ctx context.Context, k store.Kubeconfig) error {
	groups, err := json.Marshal(k.Groups)
	if err != nil {
		return fmt.Errorf("storing the groups of a kubeconfig: %w", err)
	}
	err = s.db.Write(ctx, "kubeconfigs/"+k.Tenant, func(ctx context.Context, tx *database.Tx) error {
		var tenant, project, caller int
		err := tx.QueryRow(ctx, `SELECT count(*), count(CASE WHEN project = ? THEN 1 END), count(CASE WHEN created_by = ? THEN 1 END) FROM kubeconfigs WHERE tenant = ? AND tenant_uid = ?`,
			k.Project, k.CreatedBy, k.Tenant, k.TenantUID).Scan(&tenant, &project, &caller)
		if err != nil {
			return err
		}
		if tenant >= store.MaxKubeconfigs || project >= store.MaxKubeconfigsOfProject || caller >= store.MaxKubeconfigsOfCaller {
			return store.ErrTooManyKubeconfigs
		}
		_, err = tx.Exec(ctx, `INSERT INTO kubeconfigs (`+kubeconfigColumns+`) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
			k.ID, k.Name, k.Tenant, k.TenantUID, k.Project, k.Role, k.SecretUID, k.Life.Microseconds(), micros(k.Created), k.CreatedBy, string(groups), micros(k.Expires))
		return err
	})
	if err != nil {
		return fmt.Errorf("storing a kubeconfig: %w", err)
	}
	return nil
}

// GrantToken implements store.Kubeconfigs.
func (s *Store) GrantToken(ctx context.Context, k store.Kubeconfig, e store.Event) error {
	groups, err := json.Marshal(k.Groups)
	if err != nil {
		return fmt.Errorf("recording the groups of a kubeconfig: %w", err)
	}
	err = s.db.Write(ctx, "kubeconfig/"+k.ID, func(ctx context.Context, tx *database.Tx) error {
		// Of two at once the later end counts: both tokens are valid.
		changed, err := tx.Exec(ctx, `UPDATE kubeconfigs SET secret_uid = ?1, in_groups = ?4, expires = CASE WHEN secret_uid <> '' AND expires > ?2 THEN expires ELSE ?2 END WHERE id = ?3`,
			k.SecretUID, micros(k.Expires), k.ID, string(groups))
		if err != nil {
			return err
		}
		if changed == 0 {
			return store.ErrNotFound
		}
		return insertEvent(ctx, tx, e)
	})
	if err != nil {
		return fmt.Errorf("recording a token of a kubeconfig: %w", err)
	}
	return nil
}

// GetKubeconfig implements store.Kubeconfigs.
func (s *Store) GetKubeconfig(ctx context.Context, tenant, project, id string) (store.Kubeconfig, error) {
	k, err := database.One(ctx, s.db, readKubeconfig, `SELECT `+kubeconfigColumns+` FROM kubeconfigs WHERE tenant = ? AND project = ? AND id = ?`, tenant, project, id)
	if err != nil {
		return store.Kubeconfig{}, fmt.Errorf("reading a kubeconfig: %w", err)
	}
	return k, nil
}

// ListKubeconfigs implements store.Kubeconfigs.
func (s *Store) ListKubeconfigs(ctx context.Context, of store.KubeconfigFilter, limit int) ([]store.Kubeconfig, error) {
	where, arguments := []string{`id > ?`}, []any{of.After}
	for _, field := range []struct{ column, value string }{{"tenant", of.Tenant}, {"tenant_uid", of.TenantUID}, {"project", of.Project}, {"created_by", of.CreatedBy}} {
		if field.value != "" {
			where, arguments = append(where, field.column+` = ?`), append(arguments, field.value)
		}
	}
	if !of.EndedBy.IsZero() {
		where, arguments = append(where, `(expires <= ? OR created_by IN (SELECT id FROM tokens WHERE revoked > 0))`), append(arguments, micros(of.EndedBy))
	}
	all, err := database.All(ctx, s.db, readKubeconfig, `SELECT `+kubeconfigColumns+` FROM kubeconfigs WHERE `+strings.Join(where, ` AND `)+` ORDER BY id LIMIT ?`, append(arguments, limit)...)
	if err != nil {
		return nil, fmt.Errorf("reading kubeconfigs: %w", err)
	}
	return all, nil
}

// DeleteKubeconfig implements store.Kubeconfigs.
func (s *Store) DeleteKubeconfig(ctx context.Context, id string, e store.Event) error {
	err := s.db.Write(ctx, "kubeconfig/"+id, func(ctx context.Context, tx *database.Tx) error {
		deleted, err := tx.Exec(ctx, `DELETE FROM kubeconfigs WHERE id = ?`, id)
		switch {
		case err != nil:
			return err
		case deleted == 0:
			return store.ErrNotFound
		case e.Action == "":
			return nil
		}
		return insertEvent(ctx, tx, e)
	})
	if err != nil {
		return fmt.Errorf("deleting a kubeconfig: %w", err)
	}
	return nil
}
