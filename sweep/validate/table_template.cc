#include "sweep/validate/table_template.h"

#include <fmt/format.h>

#include <algorithm>

#include "sweep/validate/measured_table.h"

namespace shardscape::validate {

namespace {

constexpr TableTemplate kTemplates[] = {
    {"training", TableKind::plans,
     "id,phase,model,cluster,stack,precision,gpus,tensor_parallel,sequence_parallel,pipeline_parallel,zero_"
     "stage,"
     "recompute,microbatch_size,global_batch,sequence_length,measured_step_time_s,measured_memory_peak_"
     "bytes\n"
     "run-1,training,llama3.1-8b,dgx-h100,megatron-core,bf16,8,2,1,1,1,selective,1,128,4096,6.4,4.1e10\n"},
    {"serving", TableKind::plans,
     "id,phase,model,cluster,stack,precision,gpus,tensor_parallel,prompt_tokens,output_tokens,concurrency,"
     "measured_ttft_s,measured_itl_s,measured_e2e_s\n"
     "run-1,inference,llama3.1-8b,dgx-h100,vllm,bf16,1,1,1024,256,8,0.2,0.008,2.2\n"},
    {"open-loop", TableKind::open_loop,
     "id,model,device,software,gpus,tensor_parallel,requested_rate,prompt_tokens_mean,output_tokens_"
     "requested,"
     "ttft_mean_s,tpot_derived_s,e2e_mean_s\n"
     "run-1,llama3.1-8b,h100-sxm-80gb,vllm 0.9,1,1,2,1024,256,0.05,0.008,2.1\n"},
    {"mlperf", TableKind::mlperf,
     "id,model,scenario,device,software,gpus,precision,ttft_limit_s,tpot_limit_s,completed_requests_per_s,"
     "tokens_per_s\n"
     "result-1,llama2-70b-99,Offline,h100-sxm-80gb,TensorRT 10.2,8,fp8,,,75,22000\n"},
    {"gemm", TableKind::gemm,
     "device,precision,m,n,k,measured_time_s\nh100-sxm-80gb,bf16,8192,8192,8192,0.0017\n"},
    {"collectives", TableKind::collectives,
     "cluster,stack,collective,gpus,gpus_per_node,bytes,median_s\n"
     "dgx-h100,megatron-core,all_reduce,8,8,268435456,0.0018\n"},
    {"gemm-alone", TableKind::gemm_alone,
     "device,gemm_dtype,m,n,k,measured_time_s\nh100-sxm-80gb,bfloat16,8192,8192,8192,0.0014\n"},
    {"attention-prefill", TableKind::attention_prefill,
     "device,batch_size,isl,num_heads,num_key_value_heads,head_dim,measured_time_s\n"
     "h100-sxm-80gb,1,8192,32,8,128,0.0012\n"},
    {"attention-decode", TableKind::attention_decode,
     "device,batch_size,isl,num_heads,num_key_value_heads,head_dim,step,measured_time_s\n"
     "h100-sxm-80gb,32,1,32,8,128,2047,0.00011\n"},
    {"nccl", TableKind::nccl,
     "device,op_name,nccl_dtype,num_gpus,message_size,measured_time_s\n"
     "h100-sxm-80gb,all_reduce,half,8,134217728,0.0014\n"},
    {"custom-all-reduce", TableKind::custom_all_reduce,
     "device,op_name,kernel_source,allreduce_dtype,num_gpus,message_size,measured_time_s\n"
     "h100-sxm-80gb,all_reduce,vLLM_graph,bfloat16,8,32768,7e-6\n"},
    {"experts", TableKind::experts,
     "device,num_tokens,hidden_size,inter_size,topk,num_experts,moe_tp_size,moe_ep_size,distribution,"
     "measured_time_s\n"
     "h100-sxm-80gb,4096,4096,14336,2,8,1,1,balanced,0.0053\n"},
    {"latent-attention", TableKind::latent_attention,
     "device,op_name,mla_dtype,kv_cache_dtype,batch_size,isl,step,num_heads,tp_size,measured_time_s\n"
     "h100-sxm-80gb,mla_generation,bfloat16,bfloat16,32,1,4095,128,1,0.00008\n"},
    {"expert-exchange", TableKind::expert_exchange,
     "device,op_name,node_num,hidden_size,num_token,num_topk,num_experts,dispatch_avg_t_us,combine_avg_t_us\n"
     "h100-sxm-80gb,ll,1,7168,128,8,256,40,70\n"},
};

}  // namespace

std::span<const TableTemplate> table_templates() { return kTemplates; }

std::string column_meanings(const TableTemplate& of) {
  std::string text;
  const Table table = parse_csv(of.csv, {});
  for (const std::string& name : table.columns) {
    const auto column = std::ranges::find(columns_of(of.kind), name, &Column::name);
    const bool needed = column->use == ColumnUse::needed;
    text += fmt::format("  {:<27}{} {}\n", name, needed ? '*' : ' ', column->meaning);
  }
  return text;
}

}  // namespace shardscape::validate
